/** Checks that calls with wrong arguments are refused correctly and change nothing. */

import { inspect, isDeepStrictEqual } from 'node:util';
import { Coordinator } from 'allstop';
import { type Kind, type OddValue, oddValues, snapshot } from './odd-values.ts';

/** A function of the API and one of its parameters. */
export type Parameter = {
  call: string;
  /** The name of the argument in the error message. */
  argument: string;
  pass: (coord: Coordinator, value: unknown) => unknown;
  rejects?: boolean;
  /** Kinds of values that are accepted, or that other tests check. */
  except?: Kind[];
  /** Whether the parameter is one of a few strings, so that another string is a wrong value. */
  oneOf?: boolean;
  /** Whether to pass values of the kind 'object', too: true if the parameter must be of a class. */
  objects?: boolean;
};

export type Refusal = { error: Error & { code?: string }; rejected: boolean };

async function attempt(call: () => unknown): Promise<Refusal | undefined> {
  let rejected = false;
  try {
    const result = call();
    rejected = true;
    await result;
    return undefined;
  } catch (error) {
    return { error: error as Error, rejected };
  }
}

/** Returns how the call was refused. Throws if it was accepted, or has changed the coordinator. */
export async function refusal(coord: Coordinator, call: () => unknown): Promise<Refusal> {
  const before = snapshot(coord);
  const refused = await attempt(call);
  const after = snapshot(coord);
  if (refused === undefined) throw new Error('The call was accepted');
  if (isDeepStrictEqual(before, after)) return refused;
  throw new Error(`The call changed the state:\n${inspect(before)}\n${inspect(after)}`);
}

export type State = 'running' | 'stopped' | 'joined';

/** Makes a coordinator in that state, with a thread and a link. */
export async function coordinatorThatIs(state: State): Promise<Coordinator> {
  const coord = new Coordinator({ name: state });
  coord.registerThread(new Promise(() => {}), { name: 'never ends' });
  coord.stopOnAbort(new AbortController().signal);
  if (state === 'stopped') {
    coord.requestStop(new RangeError('an error'));
    coord.requestStop(new TypeError('a later one'));
  } else if (state === 'joined') {
    coord.requestStop();
    await coord.join({ stopGracePeriodMs: 0, ignoreLiveThreads: true });
  }
  return coord;
}

function expected(parameter: Parameter, { kind }: OddValue): string | undefined {
  const { except = [], objects = false } = parameter;
  if (except.includes(kind)) return undefined;
  if (kind === 'object' && !objects) return undefined;
  if (kind === 'string' && parameter.oneOf) return 'TypeError ERR_INVALID_ARG_VALUE';
  if (kind === 'negative' && except.includes('number')) return 'RangeError ERR_OUT_OF_RANGE';
  return 'TypeError ERR_INVALID_ARG_TYPE';
}

const MESSAGE = /^The "([^"]+)" (?:argument|property) must be .+\. Received [^\n]*$/;
const RANGE_MESSAGE = /^The value of "([^"]+)" is out of range\. It must be .+\. Received .+$/;

/** Passes every odd value. Returns a line for each that is not refused as expected. */
export async function misbehaviour(coord: Coordinator, parameter: Parameter): Promise<string[]> {
  const found: string[] = [];
  for (const odd of oddValues()) {
    const wanted = expected(parameter, odd);
    if (wanted === undefined) continue;
    try {
      const { error, rejected } = await refusal(coord, () => parameter.pass(coord, odd.value));
      const got = `${error.constructor.name} ${error.code}`;
      const [, named] = MESSAGE.exec(error.message) ?? RANGE_MESSAGE.exec(error.message) ?? [];
      if (got !== wanted) found.push(`${odd.label}: ${got}: ${error.message}`);
      else if (named !== parameter.argument) found.push(`${odd.label}: ${error.message}`);
      if (rejected !== (parameter.rejects ?? false)) {
        found.push(`${odd.label}: ${rejected ? 'rejected' : 'thrown at the caller'}`);
      }
    } catch (why) {
      found.push(`${odd.label}: ${(why as Error).message}`);
    }
  }
  return found;
}
