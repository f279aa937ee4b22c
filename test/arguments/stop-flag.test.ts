// StopFlag: what an addon makes of the `signal` that its caller passes.

import { EventEmitter, getEventListeners } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { Coordinator } from 'allstop';
import { describe, expect, it } from 'vitest';
import { collectUntil } from '../support/collect.ts';
import { oddValues } from '../support/odd-values.ts';
import { addon } from '../support/test-addon.ts';

const flagOf = (value?: unknown): number => {
  const flag = addon.flag(value);
  expect(flag).toBeTypeOf('number');
  return flag as number;
};
const isStopped = (flag: number): boolean => addon.flagShouldStop(flag);
const listeners = (signal: AbortSignal): number => getEventListeners(signal, 'abort').length;

/** Waits until the JavaScript thread has taken its listeners off `signal`. */
async function unheard(signal: AbortSignal): Promise<void> {
  while (listeners(signal) > 0) await turn();
}

describe('a flag of a Coordinator', () => {
  it('is stopped while the coordinator is', () => {
    const coord = new Coordinator();
    const flag = flagOf(coord);
    expect(isStopped(flag)).toBe(false);
    coord.requestStop();
    expect(isStopped(flag)).toBe(true);
    coord.clearStop();
    expect(isStopped(flag)).toBe(false);
    addon.releaseFlag(flag);
  });
});

describe('a flag of the signal of a coordinator', () => {
  it('is stopped by the next stop, for good', () => {
    const coord = new Coordinator();
    const { signal } = coord;
    const flag = flagOf(signal);
    expect(isStopped(flag)).toBe(false);
    coord.requestStop();
    expect(isStopped(flag)).toBe(true);
    coord.clearStop();
    expect(isStopped(flag)).toBe(true);
    expect(isStopped(flagOf(signal))).toBe(true);
    expect(isStopped(flagOf(coord.signal))).toBe(false);
  });

  it('is stopped by a stop that another thread requests and clears, before the event loop turns', () => {
    const coord = new Coordinator();
    const { signal } = coord;
    const flag = flagOf(signal);
    addon.call(coord, 'requestStop');
    addon.call(coord, 'clearStop');
    expect(isStopped(flag)).toBe(true);
  });

  it('is stopped while the event loop is busy', () => {
    const coord = new Coordinator();
    addon.watchFlag(flagOf(coord.signal), 'busy');
    addon.startUnregistered(coord, 'request', 'stops');
    addon.openGate('stops');
    expect(Number(addon.result('busy'))).toBeGreaterThan(0); // blocks this thread until then
  });

  it('keeps neither the listener nor the coordinator', async () => {
    const coord = new Coordinator();
    const { signal } = coord;
    addon.releaseFlag(flagOf(signal));
    await unheard(signal);
    coord.requestStop();
    expect(signal.aborted).toBe(true);
  });
});

describe('a flag of any other AbortSignal', () => {
  it('is stopped when the signal aborts, for good', () => {
    const controller = new AbortController();
    const flag = flagOf(controller.signal);
    expect(isStopped(flag)).toBe(false);
    controller.abort();
    expect(isStopped(flag)).toBe(true);
    expect(listeners(controller.signal)).toBe(0);
    addon.releaseFlag(flag);
  });

  it('is stopped from the beginning if the signal has aborted', () => {
    const { signal } = { signal: AbortSignal.abort() };
    expect(isStopped(flagOf(signal))).toBe(true);
    expect(addon.flagStatus(signal)).toBe('0|1');
    expect(listeners(signal)).toBe(0);
  });

  it.each([
    ['of a timeout', () => AbortSignal.timeout(1)],
    ['that follows others', () => AbortSignal.any([AbortSignal.timeout(1)])],
  ])('is stopped by a signal %s, which nobody else holds', async (_, signal) => {
    const flag = flagOf(signal());
    await collectUntil(() => isStopped(flag));
  });

  it('shares one listener with the other flags, which is gone with the last', async () => {
    const { signal } = new AbortController();
    const own = (): void => {};
    signal.addEventListener('abort', own);
    const flags = Array.from({ length: 20 }, () => flagOf(signal));
    expect(listeners(signal)).toBe(2);
    for (const flag of flags.slice(1)) addon.releaseFlag(flag);
    for (let i = 0; i < 10; i++) await turn();
    expect(listeners(signal)).toBe(2);
    addon.releaseFlag(flags[0] as number);
    while (listeners(signal) > 1) await turn();
    expect(getEventListeners(signal, 'abort')).toEqual([own]);
    expect(Object.getOwnPropertySymbols(signal).map(String)).not.toContain(
      'Symbol(allstop.stopFlag)',
    );
  });

  it('uses the listener again that is about to go', async () => {
    const controller = new AbortController();
    addon.releaseFlag(flagOf(controller.signal)); // the listener goes when the event loop turns
    const flag = flagOf(controller.signal);
    for (let i = 0; i < 10; i++) await turn();
    expect(listeners(controller.signal)).toBe(1);
    controller.abort();
    expect(isStopped(flag)).toBe(true);
  });

  it('works with a frozen signal, too', async () => {
    const controller = new AbortController();
    const { signal } = controller;
    Object.preventExtensions(signal);
    const [one, other] = [flagOf(signal), flagOf(signal)];
    addon.releaseFlag(one);
    while (listeners(signal) > 1) await turn();
    controller.abort();
    expect(isStopped(other)).toBe(true);
  });

  it('works with a signal that was sealed while it had an earlier flag', async () => {
    const controller = new AbortController();
    const { signal } = controller;
    const earlier = flagOf(signal);
    Object.seal(signal);
    addon.releaseFlag(earlier);
    await unheard(signal);
    const flags = [flagOf(signal), flagOf(signal)];
    controller.abort();
    expect(flags.map(isStopped)).toEqual([true, true]);
  });
});

/** As node-abort-controller has it: an EventEmitter has the listeners. */
class EmitterSignal {
  aborted = false;
  readonly emitter = new EventEmitter();
  addEventListener(type: string, listener: () => void): void {
    this.emitter.on(type, listener);
  }
  removeEventListener(type: string, listener: () => void): void {
    this.emitter.off(type, listener);
  }
  dispatch(): void {
    this.emitter.emit('abort', { type: 'abort', target: this });
  }
  get count(): number {
    return this.emitter.listenerCount('abort');
  }
}

/** As abortcontroller-polyfill has it: listeners are called by `call`. */
class ListSignal {
  aborted = false;
  listeners: ((event: object) => void)[] = [];
  addEventListener(_: string, listener: () => void): void {
    this.listeners.push(listener);
  }
  removeEventListener(_: string, listener: () => void): void {
    this.listeners = this.listeners.filter((each) => each !== listener);
  }
  dispatch(): void {
    for (const listener of this.listeners) listener.call(this, { type: 'abort' });
  }
  get count(): number {
    return this.listeners.length;
  }
}

describe.each([
  ['node-abort-controller', EmitterSignal],
  ['abortcontroller-polyfill', ListSignal],
])('a flag of a signal as %s makes it', (_, Signal) => {
  it('is stopped when the signal aborts, and shares its listener', () => {
    const signal = new Signal();
    const flags = [flagOf(signal), flagOf(signal)];
    expect(signal.count).toBe(1);
    signal.aborted = true;
    signal.dispatch();
    expect(flags.map(isStopped)).toEqual([true, true]);
    expect(signal.count).toBe(0);
  });

  it('listens to that signal itself, not to the one from which it inherits', () => {
    const one = new Signal();
    const flag = flagOf(one);
    const heir = Object.assign(Object.create(one), new Signal());
    const other = flagOf(heir);
    heir.dispatch();
    expect([flag, other].map(isStopped)).toEqual([false, true]);
  });
});

it('a flag uses the listener that the headers of an older allstop have made: an object', () => {
  const signal = new ListSignal();
  const stop = addon.oldListener(signal);
  const flag = flagOf(signal);
  expect(signal.count).toBe(0);
  expect(isStopped(flag)).toBe(false);
  stop();
  expect(isStopped(flag)).toBe(true);
  addon.releaseFlag(flag);
});

describe('a flag of nothing', () => {
  it.each([[undefined], [null]])('never stops: %s', (value) => {
    expect(isStopped(flagOf(value))).toBe(false);
    expect(addon.flagStatus(value)).toBe('0|0');
  });
});

describe('a flag of anything else', () => {
  const others = [
    ...oddValues().filter(({ kind }) => kind !== 'undefined' && kind !== 'null'),
    { label: 'an AbortController', value: new AbortController() },
    { label: 'an EventTarget', value: new EventTarget() },
    { label: 'a forged AbortSignal', value: Object.create(AbortSignal.prototype) },
    { label: 'the object of another addon', value: addon.decoy() },
    { label: 'a bare pointer', value: addon.external() },
    { label: 'an object that has aborted in its own way', value: { aborted: 'yes' } },
    { label: 'half a signal', value: { aborted: false } },
    { label: 'what has aborted as a request of Node has', value: { aborted: true } },
  ];
  it.each(others)('is not valid, and leaves no exception: $label', ({ value }) => {
    expect(addon.flag(value)).toBeUndefined();
    expect(addon.flagStatus(value)).toBe('100|0');
  });
});

describe('a merged flag', () => {
  it('is stopped by either one', () => {
    const controllers = [new AbortController(), new AbortController()];
    const [one, other] = controllers.map(({ signal }) => flagOf(signal)) as [number, number];
    const merged = addon.mergeFlags(one, other);
    const again = addon.mergeFlags(merged, one);
    for (const flag of [one, other]) addon.releaseFlag(flag);
    expect([merged, again].map(isStopped)).toEqual([false, false]);
    controllers[1]?.abort();
    expect([merged, again].map(isStopped)).toEqual([true, true]);
  });

  it('of a flag that never stops is the other one', () => {
    const controller = new AbortController();
    const merged = addon.mergeFlags(flagOf(undefined), flagOf(controller.signal));
    expect(isStopped(merged)).toBe(false);
    controller.abort();
    expect(isStopped(merged)).toBe(true);
    expect(isStopped(addon.mergeFlags(flagOf(null), flagOf(undefined)))).toBe(false);
  });

  it('of a coordinator and a signal is stopped by both', () => {
    const coord = new Coordinator();
    const merged = addon.mergeFlags(flagOf(coord), flagOf(new AbortController().signal));
    coord.requestStop();
    expect(isStopped(merged)).toBe(true);
    coord.clearStop();
    expect(isStopped(merged)).toBe(false);
  });
});
