/**
 * The line of code where a function of this JavaScript thread begins, asked of V8 through the
 * inspector of this thread.
 *
 * 1. Each question is synchronous: no JavaScript of the program runs between its first request and
 *    its last. So nobody sees the global property by which the inspector is given the function, and
 *    a `debugger` statement cannot pause the thread while the inspector lists the scripts.
 * 2. Nothing is called and no getter runs: the line is an internal property of the function.
 */

import type { Session } from 'node:inspector';
import { builtin, isNode } from '../../base/builtins.ts';
import { fieldOf } from '../../base/thrown-value.ts';
import { post } from './stacks.ts';

type Location = { scriptId: string; lineNumber: number; columnNumber?: number };
type Properties = { internalProperties?: { name: string; value?: { value?: unknown } }[] };

const KEY = 'allstop:function';
/** A question takes up to a millisecond of this thread; a program may have 10,000 tasks. */
const MOST_FUNCTIONS = 200;

/** The result of a request. The inspector of this thread answers before `post` returns. */
function ask(session: Session, method: string, params: object = {}): unknown {
  let answer: unknown;
  post(session, method, params, (result) => {
    answer = result;
  });
  return answer;
}

function locationOf(session: Session, run: unknown): Location | undefined {
  Object.defineProperty(globalThis, KEY, { value: run, configurable: true });
  let evaluated: unknown;
  try {
    const expression = `globalThis[${JSON.stringify(KEY)}]`;
    evaluated = ask(session, 'Runtime.evaluate', { expression, silent: true, disableBreaks: true });
  } finally {
    Reflect.deleteProperty(globalThis, KEY);
  }
  const objectId = fieldOf(fieldOf(evaluated, 'result'), 'objectId');
  if (objectId === undefined) return undefined;
  const properties = ask(session, 'Runtime.getProperties', { objectId, ownProperties: true });
  const found = (properties as Properties | undefined)?.internalProperties?.find(
    ({ name }) => name === '[[FunctionLocation]]',
  );
  return found?.value?.value as Location | undefined;
}

/** The URLs of the scripts of this thread, by the inspector's ids. */
function listScripts(session: Session): Map<string, string> {
  const urls = new Map<string, string>();
  session.on('Debugger.scriptParsed', ({ params }) => urls.set(params.scriptId, params.url));
  ask(session, 'Debugger.enable');
  ask(session, 'Debugger.disable');
  return urls;
}

/** The lines of functions, at one moment. Where the runtime has no such inspector, none is known. */
export class FunctionLines {
  readonly #known = new Map<unknown, string | undefined>();
  #urls: Map<string, string> | undefined;

  /**
   * URL, line and column of the beginning of `run`; undefined if V8 does not know them, or after
   * MOST_FUNCTIONS others.
   */
  of(run: unknown): string | undefined {
    if (!this.#known.has(run) && this.#known.size < MOST_FUNCTIONS) {
      this.#known.set(run, this.#ask(run));
    }
    return this.#known.get(run);
  }

  #ask(run: unknown): string | undefined {
    if (!isNode) return undefined;
    let session: Session | undefined;
    try {
      session = new (builtin('node:inspector').Session)();
      session.connect();
      const location = locationOf(session, run);
      if (location === undefined) return undefined;
      this.#urls ??= listScripts(session);
      const url = this.#urls.get(location.scriptId);
      if (url === undefined || url === '') return undefined;
      return `${url}:${location.lineNumber + 1}:${(location.columnNumber ?? 0) + 1}`;
    } catch {
      return undefined; // the global object is frozen, or the inspector is switched off
    } finally {
      session?.disconnect();
    }
  }
}
