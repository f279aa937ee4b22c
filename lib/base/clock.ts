/**
 * `performance.now()` as it was when this module was loaded: fake timers that a test installs
 * later do not affect the package.
 */
export const now: () => number = performance.now.bind(performance);
