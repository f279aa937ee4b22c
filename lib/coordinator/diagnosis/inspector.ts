/**
 * The stacks of the JavaScript threads of this process, asked through node:inspector.
 *
 * 1. No thread is ever paused. The inspector of a thread interrupts its JavaScript, as V8 does to
 *    collect garbage, and evaluates an expression on top of it: the stack of a new Error.
 *    (`Debugger.pause` would need a second step that resumes the thread, and ends the process of
 *    Node 20 with a failed check of V8 where a function has just been entered.)
 * 2. A thread that does not turn to its inspector in time is given up. When it returns from its
 *    native code it evaluates the expression, which changes nothing, or finds the session closed.
 * 3. All workers, also those that workers have made, are known to the inspector of the main thread,
 *    and only to that. A worker asks through it, so it needs a main thread that answers.
 * 4. This thread is not asked: its stack would be that of the question.
 */

import type { Session } from 'node:inspector';
import { builtin, isNode, workerThreads } from '../../base/builtins.ts';
import { fieldOf, messageOf } from '../../base/thrown-value.ts';
import { Timer } from '../../base/timer.ts';

/** What one thread has answered. */
export type Answer = {
  /** The lines of its stack, the innermost call first; '' if it runs no JavaScript. */
  stack: string;
  /** What keeps its event loop alive, as `process.getActiveResourcesInfo()` says. */
  resources: string[];
};

/** A thread that the inspector knows. `answer` is undefined if it has not answered in time. */
export type AskedThread = { name: string; answer: Answer | undefined };

export type Asked = {
  /** By threadId, without this thread. */
  threads: Map<number, AskedThread>;
  /** Why the threads that are missing in `threads` could not be asked. */
  why: string;
};

const PROBE = 'allstop:diagnose';
const MOST_FRAMES = 50;
/** Gives an Answer as JSON. */
const EXPRESSION = `(() => {
  const { stackTraceLimit, prepareStackTrace } = Error;
  let stack;
  try {
    Error.stackTraceLimit = ${MOST_FRAMES};
    Error.prepareStackTrace = undefined;
    stack = String(new Error().stack);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
    Error.prepareStackTrace = prepareStackTrace;
  }
  let resources = [];
  try { resources = process.getActiveResourcesInfo(); } catch {}
  return JSON.stringify({ stack, resources });
})()
//# sourceURL=${PROBE}`;
const QUESTION = { expression: EXPRESSION, returnByValue: true, silent: true, disableBreaks: true };

function toAnswer(evaluated: unknown): Answer | undefined {
  const value = fieldOf(fieldOf(evaluated, 'result'), 'value');
  if (typeof value !== 'string') return undefined;
  const { stack, resources }: Answer = JSON.parse(value);
  const lines = stack.split('\n').filter((line) => /^\s+at /.test(line) && !line.includes(PROBE));
  return {
    stack: lines.map((line) => line.trim()).join('\n'),
    resources: [...new Set(resources)],
  };
}

/** Calls `settle` with the result of a request; with undefined if it fails. */
function post(
  session: Session,
  method: string,
  params: object,
  settle: (result: unknown) => void,
): void {
  type Post = (
    ...request: [string, object, (error: Error | null, result: unknown) => void]
  ) => void;
  const send = session.post.bind(session) as Post;
  send(method, params, (error, result) => settle(error ? undefined : result));
}

/** The result of a request; undefined if it fails, or if the session is closed. */
function asked(session: Session, method: string, params: object = {}): Promise<unknown> {
  return new Promise((resolve) => {
    try {
      post(session, method, params, resolve);
    } catch {
      resolve(undefined);
    }
  });
}

type Attached = { sessionId: string; workerInfo: { title: string } };
type Received = { sessionId: string; message: string };

/** The worker behind a title of the inspector: "[worker 3] name", in older versions "Worker 3". */
function idAndName(title: string): { threadId: number; name: string } | undefined {
  const [, newer, name, older] = /^(?:\[worker (\d+)\] ?(.*)|Worker (\d+))$/s.exec(title) ?? [];
  const id = newer ?? older;
  return id === undefined ? undefined : { threadId: Number(id), name: name || `worker-${id}` };
}

/** Asks the workers, as the inspector announces them. Their answers come later. */
function askWorkers(
  session: Session,
  threads: Map<number, AskedThread>,
  pending: Set<Promise<unknown>>,
): Promise<unknown> {
  const answers = new Map<string, { threadId: number; settle: (result: unknown) => void }>();
  const listeners: Record<string, (params: never) => void> = {
    'NodeWorker.attachedToWorker': ({ sessionId, workerInfo }: Attached) => {
      const worker = idAndName(workerInfo.title);
      if (worker === undefined || worker.threadId === workerThreads().threadId) return; // invariant 4
      const thread: AskedThread = { name: worker.name, answer: undefined };
      threads.set(worker.threadId, thread);
      const answered = new Promise<unknown>((settle) => {
        answers.set(sessionId, { threadId: worker.threadId, settle });
      });
      pending.add(answered.then((result) => void (thread.answer = toAnswer(result))));
      const message = JSON.stringify({ id: 1, method: 'Runtime.evaluate', params: QUESTION });
      void asked(session, 'NodeWorker.sendMessageToWorker', { sessionId, message });
    },
    'NodeWorker.receivedMessageFromWorker': ({ sessionId, message }: Received) => {
      const { id, result }: { id?: number; result?: unknown } = JSON.parse(message);
      if (id !== undefined) answers.get(sessionId)?.settle(result);
    },
    'NodeWorker.detachedFromWorker': ({ sessionId }: Received) => {
      const gone = answers.get(sessionId);
      if (gone === undefined) return;
      threads.delete(gone.threadId); // the worker has ended
      gone.settle(undefined);
    },
  };
  session.on('inspectorNotification', ({ method, params }: { method: string; params: never }) =>
    listeners[method]?.(params),
  );
  return asked(session, 'NodeWorker.enable', { waitForDebuggerOnStart: false });
}

const runtime = process.versions['bun'] !== undefined ? 'Bun' : 'Deno';

/** Asks all other JavaScript threads of this process, for `timeoutMs` at most. Never rejects. */
export async function askThreads(timeoutMs: number): Promise<Asked> {
  const threads = new Map<number, AskedThread>();
  if (!isNode) return { threads, why: `${runtime} has no inspector of other threads` };
  let session: Session | undefined;
  let timer: Timer | undefined;
  try {
    const { Session: InspectorSession } = await import('node:inspector');
    session = new InspectorSession();
    if (workerThreads().isMainThread) session.connect();
    else session.connectToMainThread();
    const isOver = new Promise<'over'>((resolve) => {
      timer = new Timer(timeoutMs, () => resolve('over'));
    });
    const pending = new Set<Promise<unknown>>();
    if (!workerThreads().isMainThread) {
      const main: AskedThread = { name: 'main', answer: undefined };
      threads.set(0, main);
      const evaluated = asked(session, 'Runtime.evaluate', QUESTION);
      pending.add(evaluated.then((result) => void (main.answer = toAnswer(result))));
    }
    // The inspector announces the workers before it answers the request.
    const announced = await Promise.race([askWorkers(session, threads, pending), isOver]);
    if (announced === 'over') {
      return { threads, why: 'the main thread, whose inspector knows the workers, is blocked' };
    }
    await Promise.race([Promise.all(pending), isOver]);
    return { threads, why: 'the inspector does not know it: it is starting, or has ended' };
  } catch (error) {
    return { threads, why: `node:inspector cannot be used: ${messageOf(error)}` };
  } finally {
    timer?.clear();
    if (session !== undefined) {
      void asked(session, 'NodeWorker.disable'); // before the session ends
      session.disconnect();
    }
  }
}

// The line of code where a function of this JavaScript thread begins, asked of V8 through the
// inspector of this thread.
//
// 1. Each question is synchronous: no JavaScript of the program runs between its first request and
//    its last. So nobody sees the global property by which the inspector is given the function, and
//    a `debugger` statement cannot pause the thread while the inspector lists the scripts.
// 2. Nothing is called and no getter runs: the line is an internal property of the function.

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
