import type { Clock } from './network.mjs';

export class JetStream {
  constructor(options: { clock: Clock; random?: () => number; domain?: string });
  wipe(): void;
}
