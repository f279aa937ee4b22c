import type { JetStream } from './jetstream.mjs';
import type { Clock, Network } from './network.mjs';

type Rights = { publish?: string[]; subscribe?: string[] };

export class Server {
  constructor(options: {
    clock: Clock;
    network: Network;
    name: string;
    address: string;
    jetstream?: JetStream;
    login?: (options: { user?: string; pass?: string }) => Rights | undefined;
  });
  readonly name: string;
  readonly address: string;
  route(other: Server): void;
  leafOf(hub: Server): void;
  crash(): void;
  restart(): void;
}
