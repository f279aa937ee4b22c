// AbortController and AbortSignal as the polyfill `abort-controller` has them: without `reason`,
// `throwIfAborted` and `AbortSignal.any`, and with an event target that is not Node's.
export class ForeignSignal {
  aborted = false;
  onabort = null;
  #listeners = new Set();

  addEventListener(type, listener) {
    if (type === 'abort') this.#listeners.add(listener);
  }

  removeEventListener(type, listener) {
    if (type === 'abort') this.#listeners.delete(listener);
  }

  get listenerCount() {
    return this.#listeners.size;
  }

  dispatch() {
    const event = { type: 'abort', target: this };
    for (const listener of Array.from(this.#listeners)) listener.call(this, event);
    this.onabort?.(event);
  }
}

export class ForeignController {
  signal = new ForeignSignal();

  abort() {
    if (this.signal.aborted) return;
    this.signal.aborted = true;
    this.signal.dispatch();
  }
}
