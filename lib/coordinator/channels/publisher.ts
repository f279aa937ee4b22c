/**
 * Publishes what happens at coordinators on the diagnostics channels of this JavaScript thread, and
 * in the log of `NODE_DEBUG=allstop`.
 *
 * The core keeps the events in its timeline, and rings the doorbell of the threads that watch them.
 * A thread watches only while it has a subscriber: Node does not tell of a new subscriber, so the
 * channels get a `subscribe` of their own that does.
 */

import { debuglog } from 'node:util';
import { isMainThread } from 'node:worker_threads';
import {
  type NativeAttachment,
  type NativeRecord,
  type NativeTimeline,
  STOP_KINDS,
  THREAD_KINDS,
  TIMELINE_TYPES,
} from '../../native/binding.ts';
import type { ErrorsHere } from '../errors-here.ts';
import type { StopRecord } from '../stop-record.ts';
import { toThreadInfo } from '../threads/thread-info.ts';
import {
  type CoordinatorMessage,
  STOP,
  STRAGGLER,
  THREAD_END,
  THREAD_START,
  type ThreadMessage,
} from './messages.ts';
import { onSubscribe, publish } from './subscribers.ts';

const CHANNELS = [STOP, THREAD_START, THREAD_END, STRAGGLER];

/** What this needs of an Attachment. */
type AttachmentLike = {
  readonly native: NativeAttachment;
  setPublisher(publisher: Publisher | undefined): number;
  readonly errors: Pick<ErrorsHere, 'toRecord'>;
};

type NativeEvent = NativeTimeline['events'][number];

const log = debuglog('allstop');
const isLogging = (): boolean => isMainThread && log.enabled;
const isHeard = (): boolean =>
  STOP.hasSubscribers ||
  THREAD_START.hasSubscribers ||
  THREAD_END.hasSubscribers ||
  STRAGGLER.hasSubscribers ||
  isLogging();

/** The attachments of this thread, and whether something listens to what happens there. */
export class Publishing {
  readonly #attachments: () => Iterable<AttachmentLike>;
  #isPrepared = false;

  constructor(attachments: () => Iterable<AttachmentLike>) {
    this.#attachments = attachments;
  }

  /** Called for each new attachment. */
  add(attachment: AttachmentLike): void {
    if (!this.#isPrepared) this.#prepare();
    if (isHeard()) Publisher.begin(attachment);
  }

  #prepare(): void {
    this.#isPrepared = true;
    onSubscribe(CHANNELS, () => {
      for (const attachment of this.#attachments()) Publisher.begin(attachment);
    });
  }
}

const publishers = new WeakMap<AttachmentLike, Publisher>();

/** Publishes the further events of one coordinator, in their order. */
class Publisher {
  readonly #attachment: AttachmentLike;
  readonly #about: CoordinatorMessage;
  /** How many events of the timeline are published, or were there before. */
  #read = 0;
  #isPublishing = false;
  /** `publish` was called while it ran. */
  #again = false;

  private constructor(attachment: AttachmentLike) {
    this.#attachment = attachment;
    const { name, id } = attachment.native;
    this.#about = { coordinator: name, coordinatorId: id };
  }

  static begin(attachment: AttachmentLike): void {
    if (publishers.has(attachment)) return;
    const publisher = new Publisher(attachment);
    publishers.set(attachment, publisher);
    publisher.#read = attachment.setPublisher(publisher);
  }

  publish(): void {
    this.#again = true;
    if (this.#isPublishing) return; // a subscriber has called us: the loop below goes on
    this.#isPublishing = true;
    try {
      // What other threads do meanwhile rings the doorbell: read until nothing is new, this might
      // never end, and the caller has a signal to abort.
      while (this.#again) {
        this.#again = false;
        const { events, dropped, startedAt } = this.#attachment.native.timeline(this.#read);
        this.#read += dropped + events.length;
        for (const event of events) this.#tell(event, startedAt);
      }
    } finally {
      this.#isPublishing = false;
    }
    if (isHeard()) return;
    publishers.delete(this.#attachment);
    this.#attachment.setPublisher(undefined);
  }

  #tell(event: NativeEvent, startedAt: number): void {
    const type = TIMELINE_TYPES[event.type];
    const at = startedAt + event.at;
    if (isLogging()) logEvent(this.#about.coordinator, event, this.#attachment.native.record());
    if (type === 'stop-requested') {
      publish(STOP, () => ({ ...this.#about, record: this.#recordOf(event) }));
    } else if (type === 'thread-started') {
      publish(THREAD_START, () => this.#aboutThread(event, true, 0));
    } else if (type === 'ended') {
      publish(THREAD_END, () => this.#aboutThread(event, false, at));
    } else if (type === 'straggler') {
      publish(STRAGGLER, () => ({
        ...this.#aboutThread(event, true, 0),
        runningForMs: this.#stopAgeMs(at),
      }));
    }
  }

  #recordOf({ generation }: NativeEvent): StopRecord | undefined {
    const record = this.#attachment.native.record();
    if (record?.generation !== generation) return undefined;
    return this.#attachment.errors.toRecord(record, false);
  }

  /** @param endedAt milliseconds since 1970; 0: it has not ended */
  #aboutThread(event: NativeEvent, alive: boolean, endedAt: number): ThreadMessage {
    const { name, kind, unobserved, threadId, threadStartedAt: startedAt } = event;
    const known = { name, kind, unobserved, alive, startedAt, endedAt, hasBegun: true };
    const thread = toThreadInfo(threadId === undefined ? known : { ...known, threadId });
    return { ...this.#about, thread };
  }

  /** The time from the stop to `at`; 0 if the stop was cleared meanwhile. */
  #stopAgeMs(at: number): number {
    const stop = this.#attachment.native.stop();
    return stop === null ? 0 : Math.max(0, Math.round(stop.ageMs - (Date.now() - at)));
  }
}

/** The deed of a thread, by the event. */
const DEEDS: Record<string, string> = {
  'thread-started': 'has started',
  ended: 'has ended',
  straggler: 'was left behind: it is alive after the grace period',
};

/** @param record the current stop */
function logEvent(coordinator: string, event: NativeEvent, record: NativeRecord | null): void {
  const { name, generation, threadId } = event;
  const type = TIMELINE_TYPES[event.type] as string;
  const deed = DEEDS[type];
  if (deed !== undefined) {
    const kind = THREAD_KINDS[event.kind] ?? 'custom';
    const which = threadId === undefined ? kind : `${kind} ${threadId}`;
    log("coordinator '%s': the thread '%s' (%s) %s", coordinator, name, which, deed);
  } else if (type === 'stop-requested' && record?.generation === generation) {
    const { threadName, threadId: id, via } = record.requester;
    const kind = STOP_KINDS[record.kind];
    const by = "coordinator '%s': stopped (%s) by the thread '%s' (%d), via '%s'";
    log(by, coordinator, kind, threadName, id, via);
  } else if (type === 'stop-requested') {
    log("coordinator '%s': stopped, and cleared since", coordinator);
  } else if (type === 'stop-cleared') {
    log("coordinator '%s': the stop was cleared", coordinator);
  } else if (type === 'queue-full') {
    log("queue '%s': full, a producer waits", name);
  }
}
