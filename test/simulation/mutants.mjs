/** Faults that the package once had, as changes of its text: the simulation has to find each. */

export const mutants = {
  suspects: {
    what: 'what ran beside a function that kills its process runs beside others again',
    changes: [
      {
        file: 'nats/coordinator/node-calls.ts',
        from: 'return this.#sent.first?.call.isSuspect === true;',
        to: 'return false;',
      },
      {
        file: 'pool/workers/feeding.ts',
        from: 'if (taker.running > 0 && ',
        to: 'if (taker.running < 0 && ',
      },
    ],
  },
  'two holders': {
    what: 'a run neither looks at the key again, nor hears of the one that has it',
    changes: [
      {
        file: 'nats/coordinator/leadership.ts',
        from: "else this.#lookIn(how === 'held' ? SIGN_MS : RETRY_MS);",
        to: "else if (how !== 'held') this.#lookIn(RETRY_MS);",
      },
      {
        file: 'nats/coordinator/other-runs.ts',
        from: 'sayAlive(to?: string): void {',
        to: 'sayAlive(to?: string): void {\n    if (to === undefined) return;',
      },
    ],
  },
  'stale checkpoint': {
    what: 'a run that was taken over writes its checkpoint',
    changes: [
      {
        file: 'cluster/checkpoint.ts',
        from: 'const mayWrite = async (): Promise<void> => await this.#variables.assertHeld?.();',
        to: 'const mayWrite = async (): Promise<void> => {};',
      },
    ],
  },
  election: {
    what: 'JetStream without a leader counts as one that is off',
    changes: [
      {
        file: 'nats/connection/jetstream.ts',
        from: 'if (chain.some(({ code }) => NOT_ENABLED.includes(code))) return error;',
        to: 'if (chain.length > 0) return error;',
      },
    ],
  },
  'always takes over': {
    what: 'a second program takes the cluster, whatever onHeld says',
    changes: [
      {
        file: 'nats/coordinator/leadership.ts',
        from: "if (onHeld === 'takeOver' || run.ended !== undefined) return true;",
        to: 'if (run.token > 0) return true;',
      },
    ],
  },
  'keyed writes': {
    what: 'the function of a call with a key writes to variables',
    changes: [
      {
        file: 'cluster/variables/worker-variables.ts',
        from: 'if (!calling.isKeyed()) return;',
        to: 'if (!calling.isKeyed() || name !== undefined) return;',
      },
    ],
  },
  'left is lost': {
    what: 'the doctor takes a worker that has left for one that is lost',
    changes: [
      {
        file: 'cli/doctor/network/topology.ts',
        from: "if (phase === 'left') return { ...check, ok: true };",
        to: '',
      },
    ],
  },
  'old secret': {
    what: 'a changed password is not asked for again',
    changes: [
      {
        file: 'nats/connection/connection.ts',
        from: "const given = typeof connect === 'function' ? await connect() : connect;",
        to: "const given = typeof connect === 'function' ? await (connect.kept ??= connect()) : connect;",
      },
    ],
  },
  'frozen exports': {
    what: 'the functions of the first worker are those of all',
    changes: [
      {
        file: 'nats/coordinator/nodes.ts',
        from: 'if (functions !== undefined) this.#lookAtFunctions();',
        to: 'if (functions !== undefined && this.#functions === undefined) this.#lookAtFunctions();',
      },
    ],
  },
  'learned addresses first': {
    what: 'addresses that servers advertise are tried before the given ones',
    changes: [
      {
        file: 'nats/connection/connection.ts',
        from: '[...shuffled(this.#options.servers), ...this.#learned.splice(0, 1)]',
        to: '[...this.#learned, ...shuffled(this.#options.servers)]',
      },
    ],
  },
};
