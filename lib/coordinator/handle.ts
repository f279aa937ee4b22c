/** Handles: plain data with which another JavaScript thread finds a coordinator or queue. */

import { holds, invalidType } from '../base/arguments.ts';
import { fieldOf } from '../base/thrown-value.ts';
import { InvalidHandleError } from '../errors/errors.ts';
import { binding } from '../native/native.ts';
import { Attachment } from './attachment.ts';

/**
 * What another JavaScript thread of this process passes to `Coordinator.attach`.
 * Plain data: post it, put it in `workerData`.
 */
export type CoordinatorHandle = {
  /** What the handle is of. */
  readonly type: 'allstop.Coordinator';
  /** Names the process and the copy of the package: elsewhere the handle is refused. */
  readonly world: string;
  /** Names the coordinator in its world. */
  readonly id: string;
};

/**
 * What another JavaScript thread of this process passes to `BoundedQueue.attach`. Plain
 * data: post it, put it in `workerData`.
 */
export type QueueHandle<T = unknown> = {
  /** What the handle is of. */
  readonly type: 'allstop.BoundedQueue';
  /** Names the process and the copy of the package: elsewhere the handle is refused. */
  readonly world: string;
  /** Names the queue in its world. */
  readonly id: string;
  /** Never set: the type of the items, for the compiler. */
  readonly item?: T;
};

/**
 * The id in a handle of a `kind` ('Coordinator', 'BoundedQueue').
 *
 * @throws TypeError: `handle` is not an object; InvalidHandleError: it is not a handle of that
 *   kind, or comes from another process or another copy of the package
 */
export function idOfHandle(kind: string, handle: unknown): string {
  if (typeof handle !== 'object' || handle === null) {
    throw invalidType('handle', `the handle of a ${kind}`, handle);
  }
  const [type, world, id] = ['type', 'world', 'id'].map((key) => fieldOf(handle, key));
  if (type !== `allstop.${kind}` || typeof id !== 'string' || !/^[1-9]\d{0,14}$/.test(id)) {
    const has = holds(() => 'handle' in handle);
    const instead = has ? ': pass the `handle` of the object, not the object' : '';
    throw new InvalidHandleError(`The handle is not the handle of a ${kind}${instead}`);
  }
  if (world !== binding().world) {
    throw new InvalidHandleError(
      'The handle comes from another process, or from another copy of the package: handles work ' +
        'within one process and one installed copy (run `npm ls allstop`)',
    );
  }
  return id;
}

/** `Coordinator.attach`, which documents it. In one thread it is the same object each time. */
export function attachmentOfHandle(handle: CoordinatorHandle): Attachment {
  const id = idOfHandle('Coordinator', handle);
  if (binding().hasCoordinator(Number(id))) {
    const known = Attachment.find(id);
    if (known !== undefined) return known;
    const attached = binding().attachCoordinator(Number(id));
    if (attached !== null) return Attachment.of(attached);
  }
  throw new InvalidHandleError(
    'The handle is stale: its Coordinator was disposed of, or has no owner any more. Keep it ' +
      'in the thread that read the handle until attach() has been called',
  );
}
