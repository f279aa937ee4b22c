/** Where the nodes of a cluster and its coordinator speak to each other. */

export type Role = 'coordinator' | 'worker' | 'doctor';

/**
 * The names of runs, sessions and nodes are random, and stand in the subjects: what is left
 * of an earlier run is heard by nobody.
 */
export class Subjects {
  readonly #prefix: string;

  constructor(cluster: string) {
    this.#prefix = `allstop.${cluster}`;
  }

  /** From the coordinator (or a doctor) to all nodes: who is there? */
  get who(): string {
    return `${this.#prefix}.who`;
  }

  /** From a node to the coordinator: here I am. */
  get hello(): string {
    return `${this.#prefix}.hello`;
  }

  /** From the coordinator to a node: its answer to a hello, and probes. */
  node(node: string): string {
    return `${this.#prefix}.node.${node}`;
  }

  /** Frames of a session, from the coordinator. */
  down(session: string): string {
    return `${this.#prefix}.down.${session}`;
  }

  /** Frames of a session, to the coordinator. `*`: of all. */
  up(session: string): string {
    return `${this.#prefix}.up.${session}`;
  }

  /** From whoever has stopped the run, to everybody, ahead of the coordinator's word. */
  stop(run: string): string {
    return `${this.#prefix}.stop.${run}`;
  }

  /** Where a client of that role has its answers. Nobody else may listen there. */
  inbox(role: Role): string {
    return `${this.#prefix}.inbox.${role}`;
  }

  /** From a doctor to the coordinator: what do you know? */
  get report(): string {
    return `${this.#prefix}.report`;
  }
}

/** A cluster's name stands in subjects and in the name of a bucket. */
export const CLUSTER_NAME: RegExp = /^[A-Za-z0-9_-]{1,64}$/;
