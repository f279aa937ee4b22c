/** Phases that only another version of allstop knows do not spoil a message. */
import { serialize } from 'node:v8';
import { describe, expect, it } from 'vitest';
import { json, parseReport } from '../../../lib/nats/wire/control-messages.ts';
import { unpackFromNode } from '../../../lib/nats/wire/session-messages.ts';

const quoted = "this version of allstop does not know the phase 'warming-up'";
const since = new Date(0);

describe('a phase that this version does not know', () => {
  it("of a node is 'unknown', and its cause quotes it", () => {
    const status = { phase: 'warming-up', capacity: 1, restarts: 0, stuck: 0 };
    const received = (sent: object): unknown =>
      unpackFromNode(serialize({ kind: 'status', status: sent }));
    expect(received(status)).toEqual({
      kind: 'status',
      status: { ...status, phase: 'unknown', cause: quoted },
    });
    expect(received({ ...status, cause: 'cold' })).toMatchObject({
      status: { phase: 'unknown', cause: `${quoted}: cold` },
    });
  });

  it("in a coordinator's report is 'unknown', and the rest of the report stays", () => {
    const task = { job: 'worker', task: 0, ready: false, since };
    const refused = { job: 'worker', host: 'h', pid: 1, since, cause: 'c', remedy: 'r' };
    const report = {
      run: 'r',
      report: {
        ready: false,
        engine: { phase: 'warming-up' },
        tasks: [
          { ...task, phase: 'warming-up' },
          { ...task, phase: 'lost', cause: 'gone' },
        ],
      },
      leftOff: 0,
      turnedAway: [{ ...refused, phase: 'too-old' }],
      dropped: 0,
    };
    expect(parseReport(json(report))).toEqual({
      ...report,
      report: {
        ready: false,
        engine: { phase: 'unknown', cause: quoted },
        tasks: [
          { ...task, phase: 'unknown', cause: quoted },
          { ...task, phase: 'lost', cause: 'gone' },
        ],
      },
    });
  });

  it.each(['constructor', '__proto__', ''])('is not a property of every object: %j', (phase) => {
    const status = { phase, capacity: 1, restarts: 0, stuck: 0 };
    expect(unpackFromNode(serialize({ kind: 'status', status }))).toMatchObject({
      status: { phase: 'unknown' },
    });
  });
});

it('a phase that this version knows stays as it is', () => {
  const status = { phase: 'import-failed', cause: 'c', capacity: 0, restarts: 0, stuck: 0 };
  const message = { kind: 'status', status };
  expect(unpackFromNode(serialize(message))).toEqual(message);
});
