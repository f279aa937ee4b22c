/** Which runtime this is. Bun and Deno also set `process.versions.node`. */

export type Runtime = { title: 'Node.js' | 'Bun' | 'Deno'; version: string };

export function runtime(): Runtime {
  const { bun, deno, node } = process.versions as Record<string, string | undefined>;
  if (bun !== undefined) return { title: 'Bun', version: bun };
  if (deno !== undefined) return { title: 'Deno', version: deno };
  return { title: 'Node.js', version: node as string };
}

/** Compares versions such as '20.19.0'; tags such as '-nightly' are ignored. */
export function atLeast(version: string, least: string): boolean {
  const [one, other] = [version, least].map((text) => text.split(/[.-]/).map(Number));
  for (const place of [0, 1, 2]) {
    const difference = (one?.[place] ?? 0) - (other?.[place] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return true;
}
