/** What a strategy says about its module besides the module's URL. */

import { inspect } from 'node:util';
import { checkString, invalidType } from '../../base/arguments.ts';
import { moduleFile } from '../../base/module-file.ts';
import { InvalidArgumentError } from '../../errors/errors.ts';

/** @returns the URL of the module's file. @throws TypeError, which says how to write a path's URL */
export function checkModule(module: unknown, name = 'options.module'): URL {
  if (module instanceof URL) return moduleFile(module);
  const shown = inspect(typeof module === 'string' && module !== '' ? module : './tasks.mjs');
  const remedy = `write new URL(${shown}, import.meta.url), or in CommonJS pathToFileURL(require.resolve(${shown}))`;
  throw invalidType(name, 'an instance of URL', module, remedy);
}

/** The names of exports that a worker calls when it begins and when it ends. */
export type ModuleHooks = {
  readonly setup?: string | undefined;
  readonly teardown?: string | undefined;
};

/** The name of a version of the program, as a coordinator and its workers are given it. */
export const DEFINITION: RegExp = /^[\x21-\x7e]{1,128}$/;

/** @throws TypeError, InvalidArgumentError */
export function checkDefinition(definition: unknown): asserts definition is string | undefined {
  if (definition === undefined) return;
  checkString('options.definition', definition);
  if (DEFINITION.test(definition)) return;
  throw new InvalidArgumentError(
    'options.definition must be 1 to 128 printable ASCII characters without spaces',
  );
}

/**
 * Checks the names of `setup` and `teardown`. Whether the module exports them, its workers find out.
 *
 * @throws TypeError, InvalidArgumentError
 */
export function checkHooks(hooks: ModuleHooks): void {
  for (const option of ['setup', 'teardown'] as const) {
    const name: unknown = hooks[option];
    if (name === undefined) continue;
    checkString(`options.${option}`, name);
    if (name !== '') continue;
    throw new InvalidArgumentError(
      `options.${option} must be the name of an export of the module; it is empty`,
    );
  }
}
