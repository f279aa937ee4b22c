/** Async tasks: registered asynchronous functions of this JavaScript thread. */

import { FailedPreconditionError, SelfJoinError } from '../../errors/errors.ts';
import type { ThreadKind } from '../../native/binding.ts';
import { hold, release } from '../../native/native.ts';
import type { Attachment } from '../attachment.ts';
import { enclosingTasks, runInTask, runWritten } from './task-context.ts';
import { registerUnstarted, Watch } from './watch.ts';

/**
 * Runs `body`, which calls the program's function `written`, as an async task. Never rejects:
 * errors go to the coordinator.
 */
export function runTask(
  attachment: Attachment,
  body: () => unknown,
  name: string,
  daemon: boolean | undefined,
  written: unknown,
): Promise<void> {
  return runAs(attachment, new Watch(attachment, 'task', name, { daemon }), body, written);
}

/**
 * Runs `body` as the thread that `watch` has registered; the thread ends with `body`. Never
 * rejects: errors go to the coordinator. `isTask`: false for a body that itself calls `runInTask`
 * for what it calls of the program.
 */
export async function runAs(
  attachment: Attachment,
  watch: Watch,
  body: () => unknown,
  written?: unknown,
  isTask = true,
): Promise<void> {
  try {
    const run = (): unknown => (isTask ? runInTask(attachment, watch, body) : body());
    await runWritten(attachment, watch.id, run, written);
  } catch (error) {
    watch.fail(error, { via: 'exception' });
  } finally {
    watch.end();
  }
}

/**
 * Runs `body` as the hook or deferred function `thread`: a join that `body` calls would wait for
 * itself.
 */
export async function runAtEnd(
  attachment: Attachment,
  { id }: { readonly id: number },
  body: () => unknown,
  written: unknown,
): Promise<void> {
  const run = (): unknown => runInTask(attachment, { id, isOfEnd: true }, body);
  await runWritten(attachment, id, run, written);
}

// A looper or a queue runner's thread: registered when it is made, started later, once.

export class OwnThread {
  readonly attachment: Attachment;
  readonly watch: Watch;
  readonly #kind: ThreadKind;
  #ended: Promise<void> = Promise.resolve();

  /** `owner`: the program's object for this thread, which the program may pass to `join`. */
  constructor(
    attachment: Attachment,
    owner: object,
    kind: ThreadKind,
    name: string,
    daemon?: boolean,
  ) {
    this.attachment = attachment;
    this.#kind = kind;
    this.watch = registerUnstarted(attachment, owner, kind, name, daemon);
  }

  get alive(): boolean {
    return this.watch.started && !this.watch.ended;
  }

  get state(): 'not started' | 'running' | 'ended' {
    if (this.watch.ended) return 'ended';
    return this.watch.started ? 'running' : 'not started';
  }

  /** @throws FailedPreconditionError */
  refuseSecondStart(): void {
    if (!this.watch.started) return;
    const thread = this.#kind === 'looper' ? 'LooperThread' : 'thread';
    throw new FailedPreconditionError(
      `The ${thread} '${this.watch.name}' can be started only once: make a new one`,
    );
  }

  /**
   * Runs `body`, which calls the program's function `written`, if that is given. Until `body` has
   * ended, the event loop stays alive and joins wait. `isTask`: false for a body that itself calls
   * `within` for what it calls of the program.
   */
  start(body: () => Promise<void>, written?: unknown, isTask = true): void {
    this.refuseSecondStart();
    this.watch.start();
    hold();
    this.#ended = runAs(this.attachment, this.watch, body, written, isTask).then(release);
  }

  /** Calls `body` as code of this thread: a join in it would wait for itself. */
  within(body: () => unknown): Promise<void> {
    return runInTask(this.attachment, this.watch, body);
  }

  /** Rejects only with SelfJoinError: an error of `body` goes to the coordinator. */
  async join(): Promise<void> {
    if (this.alive && enclosingTasks(this.attachment).includes(this.watch.id)) {
      throw new SelfJoinError(
        `The thread '${this.watch.name}' called its own join(), which would wait for itself`,
      );
    }
    await this.#ended;
  }
}
