// ReportError in C++ (TensorFlow's ReportStatus): keeps an error without stopping the coordinator.

import { Coordinator, NativeError, OutOfRangeError } from 'allstop';
import { describe, expect, it } from 'vitest';
import { addon } from '../support/test-addon.ts';

const OK = '0';

function reported(message = 'the disk is slow'): Coordinator {
  const coord = new Coordinator();
  expect(addon.call(coord, 'reportError', message)).toBe(OK);
  return coord;
}

describe('an error that C++ has reported without a stop', () => {
  it('stops nobody, and a join without a stop ignores it', async () => {
    const coord = reported();
    expect(coord.shouldStop()).toBe(false);
    expect(coord.stopRecord).toBeUndefined();
    await coord.join();
  });

  it('is thrown by a join that was stopped plainly', async () => {
    const coord = reported();
    coord.requestStop();
    const error = await coord.join().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(NativeError);
    expect(error).toMatchObject({ message: 'the disk is slow' });
    expect((error as Error).cause).toMatchObject({ message: 'the root' });
    expect(coord.stopRecord).toMatchObject({ kind: 'plain' });
    await expect(coord.join()).rejects.toBe(error);
  });

  it('is thrown by a join that was stopped cleanly, and given to the threads that join', async () => {
    const coord = reported();
    coord.requestStop(new OutOfRangeError('the end'));
    await expect(coord.join()).rejects.toThrow('the disk is slow');
    expect(addon.call(coord, 'join', '0')).toBe('103'); // ALLSTOP_STOPPED_BY_ERROR
  });

  it('gives way to the error of the stop', async () => {
    const coord = reported();
    const error = new TypeError('worse');
    coord.requestStop(error);
    await expect(coord.join()).rejects.toBe(error);
    expect(coord.stopRecord).toMatchObject({
      suppressed: [{ error: { message: 'the disk is slow' }, requester: { language: 'native' } }],
      suppressedCount: 1,
    });
  });

  it('is known when it is raised and reported again', async () => {
    const coord = reported();
    coord.requestStop();
    const error = await coord.join().catch((thrown: unknown) => thrown);
    coord.clearStop();
    addon.call(coord, 'reportError', 'another');
    coord.requestStop();
    addon.call(coord, 'raiseAgain');
    expect(coord.stopRecord?.suppressedCount).toBe(0);
    await expect(coord.join()).rejects.not.toBe(error);
  });

  it('is what run() comes to, whatever clean stop the body ended with', async () => {
    const running = Coordinator.run((coord) => {
      addon.call(coord, 'reportError', 'the disk is slow');
      throw new OutOfRangeError('the end');
    });
    await expect(running).rejects.toThrow('the disk is slow');
  });

  it('comes after an error that has stopped it: then it is suppressed', () => {
    const coord = new Coordinator();
    coord.requestStop(new TypeError('first'));
    addon.call(coord, 'reportError', 'second');
    expect(coord.stopRecord).toMatchObject({
      error: { message: 'first' },
      suppressed: [{ error: { message: 'second' } }],
    });
  });

  it('goes with clearStop()', async () => {
    const coord = reported();
    coord.clearStop();
    coord.requestStop();
    await coord.join();
  });

  it('is explained', () => {
    const coord = reported();
    expect(coord.explain().toString()).toMatch(/Reported without a stop: .*the disk is slow/);
    coord.requestStop();
    expect(coord.explain().toString()).toMatch(/Reported beside the stop: .*the disk is slow/);
    expect(new Coordinator().explain().toString()).not.toMatch(/Reported/);
  });
});

describe('exceptions that are nested in one another', () => {
  it('arrive as causes', async () => {
    const coord = new Coordinator();
    addon.call(coord, 'throwNested', 'cannot read');
    const error: any = await coord.join().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(NativeError);
    expect(error.message).toBe('cannot read');
    expect(error.nativeType).toMatch(/_Nested_exception<std::runtime_error>|runtime_error/);
    expect(error.cause).toBeInstanceOf(NativeError);
    expect(error.cause).toMatchObject({ message: 'sector 7', nativeType: 'std::out_of_range' });
    expect(error.cause.cause).toBeUndefined();
  });

  it('are the same objects each time', async () => {
    const coord = new Coordinator();
    addon.call(coord, 'throwNested', 'cannot read');
    const error: any = await coord.join().catch((thrown: unknown) => thrown);
    expect(coord.stopRecord?.error).toHaveProperty('cause', error.cause);
  });
});

describe('RaiseRequestedException in C++', () => {
  it('throws what JavaScript has reported', () => {
    const coord = new Coordinator();
    coord.requestStop(new RangeError('too far'));
    expect(addon.call(coord, 'raise')).toBe('RangeError: too far');
  });

  it('throws nothing without an error', () => {
    const coord = new Coordinator();
    coord.requestStop();
    expect(addon.call(coord, 'raise')).toBe('');
  });
});
