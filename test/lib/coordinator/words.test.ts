import { describe, expect, it } from 'vitest';
import { clock, duration } from '../../../lib/coordinator/words.ts';

describe('the words of explain()', () => {
  it('say durations as people do', () => {
    const said = [0, 340, 2_540, 59_999, 80_000, 7_380_000, 90_000_000].map(duration);
    expect(said).toEqual(['0 ms', '340 ms', '2.5 s', '59 s', '1 min 20 s', '2 h 3 min', '1 d 1 h']);
    expect(duration(-1)).toBe('0 ms');
  });

  it('say the date only of another day', () => {
    const noon = new Date(2026, 4, 17, 12, 3, 4, 5);
    expect(clock(noon, noon.getTime() + 1_000)).toMatch(/^12:03:04\.005 [+-]\d\d:\d\d$/);
    expect(clock(noon, noon.getTime() + 86_400_000)).toMatch(/^2026-05-17 12:03:04\.005 /);
  });
});
