/** What a fork line carries, in the order of ForkFrame::Kind. */
export const FORK_FRAMES = [
  'hello',
  'stop',
  'none',
  'late',
  'dying',
  'cancel',
  'reported',
  'exiting',
] as const;
