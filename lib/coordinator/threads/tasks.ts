/** Async tasks: registered asynchronous functions of this JavaScript thread. */

import { FailedPreconditionError, SelfJoinError } from '../../errors/errors.ts';
import type { ThreadKind } from '../../native/binding.ts';
import { hold, release } from '../../native/native.ts';
import type { Attachment } from '../attachment.ts';
import { enclosingTasks, runInTask, runWritten } from './task-context.ts';
import { Watch, watchesOf } from './watch.ts';

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
  return runAs(new Watch(attachment, 'task', name, { daemon }), body, written);
}

/**
 * Runs `body` as the thread that `watch` has registered; the thread ends with `body`. Never
 * rejects: errors go to the coordinator. `isTask`: false for a body that itself calls `runInTask`
 * for what it calls of the program.
 */
async function runAs(
  watch: Watch,
  body: () => unknown,
  written: unknown,
  isTask = true,
): Promise<void> {
  try {
    const run = (): unknown => (isTask ? runInTask(watch.attachment, watch, body) : body());
    await runWritten(watch.attachment, watch.id, run, written);
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
export function runAtEnd(
  attachment: Attachment,
  { id }: { readonly id: number },
  body: () => unknown,
  written: unknown,
): Promise<void> {
  const run = (): unknown => runInTask(attachment, { id, isOfEnd: true }, body);
  return runWritten(attachment, id, run, written);
}

/** The thread of a looper or a queue runner: registered when it is made, started later, once. */
export class OwnThread extends Watch {
  #ended: Promise<void> = Promise.resolve();

  /** `owner`: the program's object for this thread, which the program may pass to `join`. */
  constructor(
    attachment: Attachment,
    owner: object,
    kind: ThreadKind,
    name: string,
    daemon?: boolean,
  ) {
    super(attachment, kind, name, { started: false, daemon });
    watchesOf(attachment).set(owner, this); // `join` does not register it a second time
  }

  get alive(): boolean {
    return this.state === 'running';
  }

  /** @throws FailedPreconditionError */
  refuseSecondStart(): void {
    if (this.state === 'not started') return;
    const thread = this.kind === 'looper' ? 'LooperThread' : 'thread';
    throw new FailedPreconditionError(
      `The ${thread} '${this.name}' can be started only once: make a new one`,
    );
  }

  /**
   * Starts: runs `body`, which calls the program's function `written`, if that is given. Until `body`
   * has ended, the event loop stays alive and joins wait. `isTask`: false for a body that itself calls
   * `within` for what it calls of the program.
   */
  run(body: () => Promise<void>, written?: unknown, isTask = true): void {
    this.refuseSecondStart();
    this.start();
    hold();
    this.#ended = runAs(this, body, written, isTask).then(release);
  }

  /** Calls `body` as code of this thread: a join in it would wait for itself. */
  within(body: () => unknown): Promise<void> {
    return runInTask(this.attachment, this, body);
  }

  /** Rejects only with SelfJoinError: an error of `body` goes to the coordinator. */
  async join(): Promise<void> {
    if (this.alive && enclosingTasks(this.attachment).includes(this.id)) {
      throw new SelfJoinError(
        `The thread '${this.name}' called its own join(), which would wait for itself`,
      );
    }
    await this.#ended;
  }
}
