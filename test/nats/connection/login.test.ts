// @module-tag nats
/** A cluster that is closed while the client logs in. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { expect, it, onTestFinished } from 'vitest';
import { Certificates } from '../../support/certificates.ts';
import { NatsServer } from '../../support/nats-server.ts';

const fixture = (name: string): URL => new URL(`../../fixtures/${name}`, import.meta.url);

it('over TLS ends, and so does its process', async () => {
  const certificates = new Certificates();
  onTestFinished(() => certificates.remove());
  const server = await NatsServer.start(certificates.config());
  onTestFinished(() => server.close());
  const child = fork(fixture('nats-closes-in-login.mjs'), [
    fixture('cluster-tasks.mjs').href,
    server.address,
    certificates.path('ca.pem'),
  ]);
  onTestFinished(() => void child.kill('SIGKILL'));
  const end = once(child, 'exit');
  expect(await Promise.race([once(child, 'message'), end])).toContain('closed');
  expect(await end).toEqual([0, null]);
});
