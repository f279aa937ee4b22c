export const processDeaths: Record<
  string,
  { code?: number; signal?: NodeJS.Signals; stderr?: RegExp }
>;
