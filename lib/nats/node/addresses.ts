import { networkInterfaces } from 'node:os';
import { MOST_ADDRESSES } from '../wire/control-messages.ts';

/**
 * The addresses and names by which a ClusterSpec may name this machine, besides its host name: as
 * many as a hello may have. The first of each network interface go before the second ones, so that
 * one with thousands (kube-proxy's, in IPVS mode) leaves the others theirs.
 */
export function ownAddresses(): string[] {
  const found = Object.values(networkInterfaces()).flatMap((each = []) =>
    each.map(({ address }, at) => ({ address, at })),
  );
  const sorted = found.toSorted((one, other) => one.at - other.at);
  return ['localhost', ...sorted.map(({ address }) => address)].slice(0, MOST_ADDRESSES);
}
