/** The NATS subjects of a cluster. docs/nats.md lists who may publish and listen where. */

export type Role = 'coordinator' | 'worker' | 'doctor';

/**
 * The random names of runs, sessions and nodes are part of the subjects, so that nobody receives
 * late messages of an earlier run.
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

  /** From the process in which a stop began to all processes of the run: the provisional stop. */
  stop(run: string): string {
    return `${this.#prefix}.stop.${run}`;
  }

  /** The prefix of a role's reply subjects: a server can forbid them to the other roles. */
  inbox(role: Role): string {
    return `${this.#prefix}.inbox.${role}`;
  }

  /** From a doctor to the coordinator, which replies with its report. */
  get report(): string {
    return `${this.#prefix}.report`;
  }
}

/** The name of a cluster: subjects and a bucket's name contain it, and permit no other letters. */
export const CLUSTER_NAME: RegExp = /^[A-Za-z0-9_-]{1,64}$/;
