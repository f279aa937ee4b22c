/** One press of a key may be several signals: those of 500 ms from the first on. */

import { setTimeout } from 'node:timers/promises';

export const PRESS_MS = 500;

/** Resolves when the next signal is a press of its own. */
export const outlastThePress = (): Promise<void> => setTimeout(PRESS_MS + 50);
