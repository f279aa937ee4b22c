/**
 * The variables of a cluster, as a pool and its workers carry them: definitions, operations and their
 * answers. What they are, and where their values are, is known above the pool.
 */

/** A number, or an array of numbers whose type and length never change. */
export type VariableValue = number | Float64Array | Float32Array | Int32Array;

/** A variable, as a function uses it: of a cluster a Variable. */
export interface SharedVariable<T extends VariableValue = VariableValue> {
  readonly name: string;
  /** A copy of the value. */
  read(): Promise<T>;
  assign(value: T): Promise<void>;
  assignAdd(delta: T): Promise<void>;
}

export type Definition = {
  readonly name: string;
  /** An index into VARIABLE_TYPES. */
  readonly type: number;
  /** The number of elements; 1 for a number. */
  readonly length: number;
  /** Where other processes of this machine read the value (NativeVariable.path). */
  readonly path?: string;
};

/** Of an `assignAdd`: which call makes it, and its number among those of that call. */
export type OperationId = { call: number; ordinal: number };

/** An operation that a message carries: the last is the value, or the delta. */
export type Request = [
  operation: 'read' | 'assign' | 'assignAdd',
  name: string,
  /** The id of the call that makes it; 0: none does. */
  call: number,
  /**
   * Of an `assignAdd`: its number, from 1, among those of the call on the variable. Of an
   * `assign`: the number of the call's attempt; 0 outside functions.
   */
  ordinal: number,
  value?: VariableValue | undefined,
];

/** What comes back for a `Request`: the value, or an encoded error. */
export type Answer = [value: unknown, record?: Uint8Array];

/** The variables of a cluster, as its workers find them. */
export interface VariableSource {
  /** For the settings of a worker thread; undefined: messages carry the operations. */
  readonly id: number | undefined;
  readonly definitions: Definition[];
  /** Calls `reply` once, with the value or an encoded error; at once, or later. */
  answer(request: Request, reply: (answer: Answer) => void): void;
}

/** Those of a pool that is no cluster. */
export const NO_VARIABLES: VariableSource = { id: undefined, definitions: [], answer: () => {} };

/** Names the call of the function that calls. */
export interface Calling {
  /** Its id; 0 outside functions. */
  id(): number;
  /** Which attempt of the call it is, from 1; 0 outside functions. */
  attempt(): number;
  /** The id of its next `assignAdd` on the variable; undefined outside functions. */
  nextId(name: string): OperationId | undefined;
  /** Whether the result of the function that calls is kept. */
  isKeyed(): boolean;
}

/** The variables in a worker. */
export interface WorkerVariables {
  /** @throws InvalidArgumentError: no variable has this name */
  find(name: string): SharedVariable;
  /** Puts variables in the place of their copies among the arguments. */
  revive(args: unknown): void;
  define(...definitions: readonly Definition[]): void;
  answered(id: number, answer: Answer): void;
}

/** What the settings of a worker say of variables. */
export type VariableSettings = {
  /**
   * Threads only, that share memory with the values: the id of the variables
   * (NativeBinding.attachVariables). Others send messages.
   */
  variables?: number;
  /** Threads only, of a node: the variables, whose operations are messages. */
  definitions?: Definition[];
};

/** Makes them when the worker begins. `post`: sends an operation, whose answer has the same id. */
export type MakeWorkerVariables = (
  settings: VariableSettings,
  calling: Calling,
  post: (id: number, request: Request) => void,
) => WorkerVariables;
