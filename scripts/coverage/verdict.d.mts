type Exception = { file: string; code: string; to?: string; reason: string };
type Counted = { lines: Map<number, number>; branches: Map<number, number[]> };

export function subtract(
  root: string,
  files: ReadonlyMap<string, Counted>,
  exceptions: readonly Exception[],
): { objections: string[]; reached: string[] };
