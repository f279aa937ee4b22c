/** Checks that the state of an object is written by the object's own file. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { objectionTo, readHouse } from '../../scripts/house.mjs';

it('writes no state of an object from outside its file', () => {
  const { foreignWrites } = readHouse();
  expect(foreignWrites.map(objectionTo)).toEqual([]);
});

it('says which object a planted write belongs to', () => {
  const root = mkdtempSync(join(tmpdir(), 'allstop-owners-'));
  try {
    mkdirSync(join(root, 'lib'));
    writeFileSync(join(root, 'tsconfig.json'), '{ "include": ["lib"] }');
    writeFileSync(join(root, 'lib/door.ts'), 'export class Door {\n  isOpen = false;\n}\n');
    const thief =
      "import { Door } from './door.js';\nconst door = new Door();\ndoor.isOpen = true;\n";
    writeFileSync(join(root, 'lib/thief.ts'), thief);
    expect(readHouse(root).foreignWrites.map(objectionTo)).toEqual([
      'lib/thief.ts:3 writes Door.isOpen, whose owner is lib/door.ts. A state is written by its owner alone: give the owner a method that says what happened.',
    ]);
  } finally {
    rmSync(root, { recursive: true });
  }
});
