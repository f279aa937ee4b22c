// Children stop with their parent. A stop of a child does not stop the parent.

import { Coordinator, FailedPreconditionError } from 'allstop';
import { describe, expect, it } from 'vitest';
import { gate } from '../../support/gate.ts';
import { addon } from '../../support/test-addon.ts';

describe('children', () => {
  it('stop with their parent, not the reverse', () => {
    const parent = new Coordinator();
    const child = parent.child();
    const sibling = parent.child();
    child.requestStop();
    expect([parent.shouldStop(), sibling.shouldStop()]).toEqual([false, false]);
    const error = new RangeError('all');
    parent.requestStop(error);
    expect(sibling.stopRecord).toMatchObject({ kind: 'error', requester: { via: 'parent' } });
    expect(sibling.stopRecord?.error).toBe(error);
    expect(sibling.signal.reason).toBe(error);
    expect(child.stopRecord?.kind).toBe('plain'); // its own, which came first
  });

  it('are born stopped under a stopped parent, and at any depth', () => {
    const parent = new Coordinator();
    const grandchild = parent.child().child();
    parent.requestStop();
    expect(grandchild.shouldStop()).toBe(true);
    expect(parent.child().shouldStop()).toBe(true);
  });

  it('stay stopped when the parent is cleared, and cannot be cleared before', () => {
    const parent = new Coordinator();
    const child = parent.child();
    parent.requestStop();
    expect(() => child.clearStop()).toThrow(FailedPreconditionError);
    parent.clearStop();
    expect(child.shouldStop()).toBe(true);
    child.clearStop();
    expect(child.shouldStop()).toBe(false);
  });

  it("have threads of their own, which the parent's join does not wait for", async () => {
    const parent = new Coordinator();
    const child = parent.child({ name: 'child' });
    const held = gate();
    void child.start(() => held.opened);
    await parent.join();
    expect(child.threads).toHaveLength(1);
    held.open();
    await child.join();
  });

  it('abort their signals before the requestStop of the parent returns', () => {
    const parent = new Coordinator();
    const { signal } = parent.child();
    parent.requestStop();
    expect(signal.aborted).toBe(true);
  });

  it('wake the native threads that wait on them', () => {
    const parent = new Coordinator();
    addon.startUnregistered(parent.child(), 'wait', 'child-waiter'); // holds the child alone
    parent.requestStop();
    expect(addon.result('child-waiter')).toBe('stopped');
  });

  it('nest 256 levels deep and no deeper', () => {
    let deepest = new Coordinator();
    const root = deepest;
    for (let i = 0; i < 256; i++) deepest = deepest.child();
    const message =
      'Coordinators nest 256 levels deep at most: make this one a child of a higher one';
    expect(() => deepest.child()).toThrow(
      expect.objectContaining({ code: 'ERR_OUT_OF_RANGE', message }),
    );
    root.requestStop();
    expect(deepest.shouldStop()).toBe(true);
  });
});
