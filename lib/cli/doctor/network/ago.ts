/** How long ago it was, for people. Clocks of two machines may differ: never less than 0. */
export function ago(since: Date, now: number = Date.now()): string {
  const seconds = Math.max(0, Math.round((now - since.getTime()) / 1_000));
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.round(minutes / 60);
  return hours < 48 ? `${hours} h` : `${Math.round(hours / 24)} d`;
}
