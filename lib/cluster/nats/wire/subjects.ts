/** The NATS subjects of a cluster. docs/operations.md lists who may publish and listen where. */

export type Role = 'coordinator' | 'worker' | 'doctor';

/**
 * The random names of runs, sessions and nodes are part of the subjects: nobody listens to what
 * is left of an earlier run.
 */
export class Subjects {
  readonly #prefix: string;

  constructor(cluster: string) {
    this.#prefix = `allstop.${cluster}`;
  }

  /** From the coordinator or a doctor to all nodes, which answer with a hello. */
  get who(): string {
    return `${this.#prefix}.who`;
  }

  /** From a node without a session to the coordinator. */
  get hello(): string {
    return `${this.#prefix}.hello`;
  }

  /** From the coordinator to a node: welcome or refused, and probes. */
  node(node: string): string {
    return `${this.#prefix}.node.${node}`;
  }

  /** Frames of a session, from the coordinator. */
  down(session: string): string {
    return `${this.#prefix}.down.${session}`;
  }

  /** Frames of a session, to the coordinator. '*': of all sessions. */
  up(session: string): string {
    return `${this.#prefix}.up.${session}`;
  }

  /** A stop of the run, to all its processes, from the process that it began in. Provisional. */
  stop(run: string): string {
    return `${this.#prefix}.stop.${run}`;
  }

  /** The prefix of the reply subjects of a role, so that the server can keep others out. */
  inbox(role: Role): string {
    return `${this.#prefix}.inbox.${role}`;
  }

  /** From a doctor to the coordinator, which replies with its report. */
  get report(): string {
    return `${this.#prefix}.report`;
  }
}

/** A cluster's name is part of subjects and of a bucket's name, which permit no more than this. */
export const CLUSTER_NAME: RegExp = /^[A-Za-z0-9_-]{1,64}$/;
