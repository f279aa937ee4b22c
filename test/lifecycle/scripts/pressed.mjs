#!/usr/bin/env node
// A program whose hook takes HOOK_MS. It tells the test how far it has come over a socket (SOCKET),
// which also tells when it has ended: launchers may end before it, and cut its terminal.
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { Coordinator } from 'allstop';

const socket = connect(process.env.SOCKET).unref();
socket.on('error', () => {}).on('close', () => process.exit(1)); // the test is over
await once(socket, 'connect');

await Coordinator.run(
  async (coord) => {
    coord.onStop(async () => {
      socket.write('closing\n');
      await setTimeout(Number(process.env.HOOK_MS));
      socket.write('closed\n');
    });
    socket.write('ready\n');
    await coord.waitForStop();
  },
  { stopOnSignals: ['SIGINT', 'SIGTERM'] },
);
