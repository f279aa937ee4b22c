export type Clock = { now(): number; later(ms: number, fn: () => void): () => void };

export class Network {
  constructor(options: { clock: Clock; random?: () => number; latencyMs?: number });
  add(server: import('./server.mjs').Server): import('./server.mjs').Server;
  cut(from: unknown, to: unknown): void;
  mend(from: unknown, to: unknown): void;
}

export function useNetwork(
  network: Network,
  placeOf?: () => { host: string; name: string },
): () => void;
