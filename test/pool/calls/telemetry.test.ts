/** OpenTelemetry: spans of scheduled functions, and the context that goes where they go. */
import { once } from 'node:events';
import { context, propagation, SpanStatusCode, trace } from '@opentelemetry/api';
import { Coordinator } from 'allstop';
import { beforeEach, describe, expect, it } from 'vitest';
import { exporter, spans } from '../../fixtures/telemetry.mjs';
import { describeKinds, kinds, useClusters } from '../../support/clusters.ts';

const module = new URL('../../fixtures/telemetry.mjs', import.meta.url);
const contextOnly = new URL('../../fixtures/telemetry-context-only.mjs', import.meta.url);

beforeEach(() => exporter.reset());

/** Runs `body` in a span and with baggage, as the handler of a request does. */
function inRequest<T>(body: () => T): { result: T; traceId: string; spanId: string } {
  const span = trace.getTracer('test').startSpan('request');
  const baggage = propagation.createBaggage({ order: { value: 'o-17' } });
  const own = propagation.setBaggage(trace.setSpan(context.active(), span), baggage);
  const result = context.with(own, body);
  span.end();
  const { traceId, spanId } = span.spanContext();
  return { result, traceId, spanId };
}

const named = (name: string) => spans().filter((span) => span.name === name);

const quick = ['thread', 'process'];

describeKinds(
  kinds,
  (kind) => {
    const { start } = useClusters(kind);

    it('carries the context, and makes a span of the call and one of the attempt', async () => {
      const cluster = start(1, {}, module);
      const { result, traceId, spanId } = inRequest(() => cluster.run('activeLater'));
      const there: any = await result;
      expect(there).toMatchObject({ traceId, baggage: 'o-17' });
      const [call] = named('activeLater');
      expect(call).toMatchObject({
        traceId,
        parent: spanId,
        status: { code: SpanStatusCode.UNSET },
      });
      expect(call?.attributes).toMatchObject({
        'allstop.coordinator': 'cluster',
        'allstop.attempts': 1,
      });
      expect(call?.events).toEqual(['call-queued', 'call-started', 'call-ended']);
      const attempts = ((await cluster.run('spans')) as any[]).filter(
        ({ name }) => name === 'attempt activeLater',
      );
      expect(attempts).toMatchObject([
        { spanId: there.spanId, parent: call?.spanId, attributes: { 'allstop.attempt': 1 } },
      ]);
    });

    it('carries it to a worker that has a context manager only', async () => {
      const cluster = start(1, {}, contextOnly);
      const { result, traceId } = inRequest(() => cluster.run('activeLater'));
      const there: any = await result;
      expect(there).toMatchObject({ traceId, spanId: named('activeLater')[0]?.spanId });
    });

    it('carries it by schedule, map, and through a RemoteValue', async () => {
      const cluster = start(1, {}, module);
      const request = inRequest(async () => {
        const remote = await cluster.schedule('active');
        const after = await cluster.schedule('active', [remote]);
        const mapped = [];
        for await (const each of cluster.map('active', [1, 2])) mapped.push(each);
        return [await remote.fetch(), await after.fetch(), ...mapped];
      });
      const all = await request.result;
      expect(all).toHaveLength(4);
      for (const each of all)
        expect(each).toMatchObject({ traceId: request.traceId, baggage: 'o-17' });
    });

    it('ends the span of a call that fails, with its error', async () => {
      const cluster = start(1, {}, module);
      await expect(cluster.run('fail')).rejects.toThrow('no good');
      expect(named('fail')).toMatchObject([
        { status: { code: SpanStatusCode.ERROR, message: 'no good' } },
      ]);
    });

    it('tells in the span of the call of an attempt that was lost with its worker', async () => {
      const cluster = start(1, {}, module);
      await cluster.run('dieOnce');
      const [call] = named('dieOnce');
      expect(call?.attributes).toMatchObject({ 'allstop.attempts': 2 });
      expect(call?.events).toEqual([
        'call-queued',
        'call-started',
        'call-lost',
        'call-run-again',
        'call-started',
        'call-ended',
      ]);
    });

    it('ends the span of a call that is refused', async () => {
      const cluster = start(1, {}, module);
      await cluster.run('active');
      exporter.reset();
      cluster.coordinator.requestStop(new Error('enough'));
      await expect(cluster.run('active')).rejects.toThrow('stopped');
      for (const { status } of named('active')) expect(status.code).toBe(SpanStatusCode.ERROR);
    });
  },
  quick,
);

describe('the context in which a thread was started', () => {
  it('is the root context of a spawned worker', async () => {
    const coord = new Coordinator();
    const { result, traceId, spanId } = inRequest(() => coord.spawn(module, { argv: ['report'] }));
    const [found] = await once(result, 'message');
    expect(found).toEqual({ traceId, spanId, baggage: 'o-17' });
    await coord.join();
  });

  it('is not that of a worker spawned outside of it', async () => {
    const coord = new Coordinator();
    inRequest(() => {});
    const [found] = await once(coord.spawn(module, { argv: ['report'] }), 'message');
    expect(found.traceId).toBeUndefined();
    await coord.join();
  });

  it.skipIf(process.platform === 'win32')('is the root context of a forked process', async () => {
    const coord = new Coordinator();
    const { result, traceId, spanId } = inRequest(() => coord.fork(module, ['report']));
    const [found] = await once(result, 'message');
    expect(found).toEqual({ traceId, spanId, baggage: 'o-17' });
    await coord.join();
  });
});
