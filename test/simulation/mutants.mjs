/** Faults that the package once had, as changes of its text: the simulation has to find each. */

export const mutants = {
  suspects: {
    what: 'what ran beside a function that kills its process runs beside others again',
    changes: [
      {
        file: 'nats/coordinator/session.ts',
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
  'in advance': {
    what: 'what was sent in advance to a node that died counts as not begun',
    changes: [
      {
        file: 'nats/coordinator/session.ts',
        from: "const fateOf = (): Fate => (lives ? 'ended' : 'running');",
        to: "const fateOf = (sent: Sent): Fate => (oldest.has(sent) ? 'running' : 'sent'); const oldest = new Set(this.#sent.newestFirst().slice(-3));",
      },
    ],
  },
  'twice in advance': {
    what: 'what may be begun once is sent in advance, and again',
    changes: [
      {
        file: 'nats/coordinator/dispatcher.ts',
        from: 'return this.#host.queue.next(calls)?.retries !== 0;',
        to: 'return true;',
      },
      {
        file: 'nats/coordinator/session.ts',
        from: "const fateOf = (): Fate => (lives ? 'ended' : 'running');",
        to: "const fateOf = (sent: Sent): Fate => (oldest.has(sent) || sent.call.retries > 0 ? 'running' : 'sent'); const oldest = new Set(this.#sent.newestFirst().slice(-3));",
      },
    ],
  },
  'any spare': {
    what: 'any worker that nobody missed stands for a lost one',
    changes: [
      {
        file: 'nats/coordinator/tasks.ts',
        from: '.toSorted((one, other) => sinceOf(one) - sinceOf(other))[0]',
        to: '[0]',
      },
    ],
  },
  'late letters': {
    what: 'what comes late of a dead worker counts as a sign of life',
    changes: [
      {
        file: 'nats/coordinator/tasks.ts',
        from: 'this.session?.contact.livedAt',
        to: 'this.session?.contact.heardAt',
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
        file: 'nats/coordinator/leadership.ts',
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
        from: "if (phase === 'left' || isOver) return { ...check, ok: true };",
        to: 'if (isOver) return { ...check, ok: true };',
      },
    ],
  },
  'old secret': {
    what: 'a changed password is not asked for again',
    changes: [
      {
        file: 'nats/connection/connection.ts',
        from: "(typeof connect === 'function' ? await connect() : connect);",
        to: "(typeof connect === 'function' ? await (connect.kept ??= connect()) : connect);",
      },
    ],
  },
  'frozen exports': {
    what: 'the functions of the first worker are those of all',
    changes: [
      {
        file: 'nats/coordinator/nodes.ts',
        from: 'if (functions !== undefined) this.#lookAtFunctions();',
        to: 'if (functions !== undefined && this.functions === undefined) this.#lookAtFunctions();',
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
  'additions twice': {
    what: 'an addition of a call that runs again counts again',
    changes: [
      {
        file: 'cluster/variables/cluster-variables.ts',
        from: 'native.assignAdd(value, call, ordinal);',
        to: 'native.assignAdd(value, 0, ordinal);',
      },
    ],
  },
  'behind a line': {
    what: 'the doctor looks at the oldest call alone',
    changes: [
      {
        file: 'nats/coordinator/nats-engine.ts',
        from: 'of oldest.entries()) {',
        to: 'of oldest.slice(0, 1).entries()) {',
      },
    ],
  },
  'early join': {
    what: 'join waits for what has begun, not for what waits',
    changes: [
      {
        file: 'cluster/calls/call-group.ts',
        from: '(this.#live.size > 0 || !first.isOver())',
        to: '(this.#live.size > 1 && !first.isOver())',
      },
    ],
  },
  'error twice': {
    what: 'the error of a scheduled function stays after it was thrown',
    changes: [
      {
        file: 'cluster/calls/call-group.ts',
        from: 'this.#failure = undefined;\n        this.#refuse',
        to: 'this.#refuse',
      },
    ],
  },
  'lost place': {
    what: 'the place of a worker that was started again at once is lost for ever',
    changes: [
      {
        file: 'nats/coordinator/tasks.ts',
        from: "if (task.phase !== 'lost') continue;",
        to: "if (task.phase !== 'left') continue;",
      },
    ],
  },
  'moved is dead': {
    what: 'a function whose node went to another program is charged with its death',
    changes: [
      {
        file: 'nats/coordinator/nodes.ts',
        from: 'const lives = loss === lost.leftSession;',
        to: 'const lives = false;',
      },
    ],
  },
  'once and again': {
    what: 'a function with retries: 0 begins again when its worker was ended for another reason',
    changes: [
      {
        file: 'pool/queue/call.ts',
        from: "if (fate === 'running' || this.retries === 0) this.deaths += 1;",
        to: "if (fate === 'running') this.deaths += 1;",
      },
    ],
  },
  'moved in advance': {
    what: 'what a node had in advance that went to another program counts as not begun',
    changes: [
      {
        file: 'nats/coordinator/session.ts',
        from: "(lives ? 'ended' : 'running');",
        to: "(lives ? 'sent' : 'running');",
      },
    ],
  },
  'open generators': {
    what: 'a worker that ends in order leaves its iterators open',
    changes: [
      {
        file: 'pool/worker/worker-resources.ts',
        from: 'iterators.map((each) => each.return())',
        to: 'iterators.slice(0, 0).map((each) => each.return())',
      },
    ],
  },
  'resources for all': {
    what: 'what runs on a node uses nothing of its resources',
    changes: [
      {
        file: 'nats/coordinator/session.ts',
        from: 'freeOf(info.resources ?? {}, used)',
        to: 'freeOf(info.resources ?? {}, used.slice(0, 0))',
      },
    ],
  },
  'two in secret': {
    what: 'programs that hold a key each are not told',
    changes: [
      {
        file: 'nats/coordinator/leadership.ts',
        from: 'warnOfTwo(this.#options.settings.cluster, other, this.#leadership.token ?? 0);',
        to: '',
      },
    ],
  },
  'leaves in silence': {
    what: 'functions are not told that their worker leaves',
    changes: [
      {
        file: 'nats/node/node-session.ts',
        from: 'this.#pool?.leave();\n    this.#post',
        to: 'this.#post',
      },
    ],
  },
  'no window': {
    what: 'all that is sent is on its way at once',
    changes: [
      {
        file: 'nats/wire/reliable-channel.ts',
        from: 'return this.#unacked.length < WINDOW_FRAMES && this.#unackedBytes + bytes <= windowBytes;',
        to: 'return true;',
      },
    ],
  },
  'values stay': {
    what: 'a call that a lost node may have keeps its value',
    changes: [{ file: 'pool/queue/call.ts', from: 'this.life = TOLD;', to: '' }],
  },
  'calls stay': {
    what: 'a node keeps the calls that have ended',
    changes: [
      {
        file: 'nats/node/node-session.ts',
        from: 'if (id !== undefined) this.#calls.delete(id);',
        to: '',
      },
    ],
  },
  'all checkpoints': {
    what: 'older checkpoints are not removed',
    changes: [
      {
        file: 'cluster/checkpoint.ts',
        from: 'const old = files.slice(0, Math.max(0, files.length + 1 - this.#keep));',
        to: 'const old = files.slice(0, 0);',
      },
    ],
  },
  'two records': {
    what: 'a worker keeps its own stop, whichever was first',
    changes: [
      {
        file: 'coordinator/stop-relay.ts',
        from: 'this.#attachment.native.answerStop(winner.error, toOptions(winner), winner.id);',
        to: 'this.#attachment.native.answerNone();',
      },
    ],
  },
};
