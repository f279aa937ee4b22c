/** A promise with a time limit. */
import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { within } from '../../../lib/base/timer.ts';

const never = new Promise<never>(() => {});
const late = (): string => 'late';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

describe('within', () => {
  it('is the value or the error of a promise that is in time, and leaves no timer', async () => {
    expect(await within(10, Promise.resolve('value'), late)).toBe('value');
    const error = new Error('failed');
    await expect(within(10, Promise.reject(error), late)).rejects.toBe(error);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is what onLate returns or throws once the time is over', async () => {
    const value = within(10, never, late);
    const error = new Error('too late');
    const failed = expect(
      within(10, never, () => {
        throw error;
      }),
    ).rejects.toBe(error);
    vi.advanceTimersByTime(11);
    expect(await value).toBe('late');
    await failed;
  });

  it('is the reason of a signal that is aborted first, and leaves no listener', async () => {
    const controller = new AbortController();
    const { signal } = controller;
    const aborted = expect(within(10, never, late, signal)).rejects.toBe('reason');
    const others = [within(10, Promise.resolve(1), late, signal), within(0, never, late, signal)];
    await vi.advanceTimersByTimeAsync(1); // the time is over
    await vi.advanceTimersByTimeAsync(1); // the turn after it
    expect(await Promise.all(others)).toEqual([1, 'late']);
    controller.abort('reason');
    await aborted;
    expect(vi.getTimerCount()).toBe(0);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});
