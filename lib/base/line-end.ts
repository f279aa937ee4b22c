/** Where a line breaks that has no space. */

/**
 * Where to break `text`, which is longer than `width`, when there is no space after `start`: behind
 * a slash of a path or a comma of a list, so that one sees what was broken; else at `width`.
 */
export function endOfPiece(text: string, start: number, width: number): number {
  const end = Math.max(text.lastIndexOf('/', width - 1), text.lastIndexOf(',', width - 1)) + 1;
  return end > start + 1 ? end : width;
}
