#!/usr/bin/env python3
"""Records the behaviour of TensorFlow's Coordinator as test vectors for allstop.

    python3 scripts/record-tensorflow-vectors.py COORDINATOR_PY [--seed N] [--count N] \\
        > test/fixtures/tensorflow-vectors.json

COORDINATOR_PY is tensorflow/python/training/coordinator.py from TensorFlow's sources, or a copy from
a web page that shows it with a header and line numbers. The file runs unchanged, with stand-ins for
the few modules that it imports, so TensorFlow need not be installed. Written for Python 3.11.

A vector is a sequence of operations on one coordinator, each with its return value or exception, and
with should_stop() and joined after the operation. Some vectors are written by hand, one for each
promise; the others are random. The same file and seed give the same vectors, byte for byte:

* Time is virtual. A wait for the stop event, and the sleep of the grace period, first run the
  `meanwhile` operations of the sequence, then return at once as if their time were up. The code
  under test does not notice: it counts the grace period by its own sleeps, never by a clock. A
  waiter is woken even if set() and clear() both happen before it runs, as with a real Event. With
  real threads a join may also end before the last `meanwhile` operation; here it never does.
* A sequence that would block without end is an error of this script, with a message.
* Threads hash by their number, so the set of threads, and with it the stragglers' message, has a
  fixed order.

request_stop(ex) takes the error from sys.exc_info(), so every error here is reported from the except
block that caught it, as TensorFlow's documentation demands, or as an exc_info tuple.
"""

import argparse
import collections
import hashlib
import json
import random
import re
import sys
import threading
import time
import types


class OpError(Exception):
    pass


class OutOfRangeError(OpError):
    pass


class CancelledError(OpError):
    pass


class FalsyError(Exception):
    def __bool__(self):
        return False


ERROR_TYPES = {
    t.__name__: t
    for t in (ValueError, RuntimeError, LookupError, KeyError, StopIteration, KeyboardInterrupt,
              SystemExit, OpError, OutOfRangeError, CancelledError, FalsyError)
}


def plain_source(text):
    """`text`, without line numbers if it is a web page that shows the file with line numbers."""
    lines = [re.fullmatch(r"\s*(\d+)(?: (.*))?", line) for line in text.splitlines()]
    first = next((i for i, line in enumerate(lines) if line and line[1] == "1"), len(lines))
    numbered = lines[first:]
    if not numbered or any(not line or int(line[1]) != i for i, line in enumerate(numbered, 1)):
        return text
    return "\n".join(line[2] or "" for line in numbered)


def load_coordinator(source):
    """Runs coordinator.py as a module, with stand-ins for the modules that it imports."""

    def reraise(_, value, traceback=None):
        raise value.with_traceback(traceback)

    def stand_in(name, **contents):
        module = types.ModuleType(name)
        module.__dict__.update(contents)
        sys.modules[name] = module
        return module

    stand_in("six", reraise=reraise)
    for package in ("tensorflow", "tensorflow.python"):
        stand_in(package)
    stand_in("tensorflow.python.framework", errors=stand_in(
        "tensorflow.python.framework.errors", OutOfRangeError=OutOfRangeError))
    stand_in("tensorflow.python.platform", tf_logging=stand_in(
        "tensorflow.python.platform.tf_logging", info=lambda *args, **kwargs: None))
    stand_in("tensorflow.python.util", compat=stand_in(
        "tensorflow.python.util.compat", as_str_any=str))
    stand_in("tensorflow.python.util.tf_export", tf_export=lambda name: lambda value: value)

    module = types.ModuleType("coordinator")
    exec(compile(source, "coordinator.py", "exec"), module.__dict__)
    return module


class GatedThread(threading.Thread):
    """A thread that ends when `release` is called; that call returns when it has ended."""

    def __init__(self, number):
        self._number = number
        super().__init__(name=f"T{number}", daemon=True)
        self._gate = threading.Event()

    def __hash__(self):
        return self._number

    def run(self):
        self._gate.wait()

    def release(self):
        self._gate.set()
        self.join()


class StopEvent(threading.Event):
    """The coordinator's event; see "Time is virtual" above."""

    def __init__(self, sequence):
        super().__init__()
        self._sequence = sequence
        self._sets = 0

    def set(self):
        self._sets += 1
        super().set()

    def wait(self, timeout=None):
        if self.is_set():
            return True
        before = self._sets
        something_happened = self._sequence.do_meanwhile()
        if self._sets == before and not something_happened and (
                timeout is None or self._sequence.joining):
            raise AssertionError("this sequence blocks for ever")
        return self._sets != before


class Sequence:
    """Runs operations on one coordinator and records their results."""

    def __init__(self, module, clean, errors, threads):
        self._clean, self._error_types, self._thread_kinds = clean, errors, threads
        self.errors = {name: ERROR_TYPES[kind](name) for name, kind in errors.items()}
        self.threads = {name: GatedThread(int(name[1:])) for name in threads}
        for name, thread in self.threads.items():
            if threads[name] != "never started":
                thread.start()
            if threads[name] == "finished":
                thread.release()
        self.coordinator = module.Coordinator(
            *[] if clean is None else [[ERROR_TYPES[name] for name in clean]])
        self.coordinator._stop_event = StopEvent(self)
        module.time = types.SimpleNamespace(sleep=lambda _: self.do_meanwhile(), time=time.time)
        self.joining = False
        self.registered = set()  # the names of the threads for which a join would wait
        self._meanwhile = []
        self._done_meanwhile = []
        self.steps = []

    def do(self, op, **arguments):
        self.steps.append(self._step({"op": op, **arguments}))

    def do_meanwhile(self):
        """Returns True if there was something to do."""
        steps, self._meanwhile = self._meanwhile, []
        for step in steps:
            self._done_meanwhile.append(self._step(step))
        return bool(steps)

    def alive(self, names):
        return [name for name in sorted(names) if self.threads[name].is_alive()]

    def vector(self, name):
        for thread in self.threads.values():
            if thread.is_alive():
                thread.release()
        return {"name": name, "clean": self._clean, "errors": self._error_types,
                "threads": self._thread_kinds, "steps": self.steps}

    def _step(self, step):
        step = dict(step)
        if "meanwhile" in step:
            self._meanwhile, self._done_meanwhile = step["meanwhile"], []
        try:
            returned = self._perform(**step)
            if returned is not None:
                step["returned"] = returned
        except BaseException as error:
            step["raised"] = self._symbol(error)
        if "meanwhile" in step:
            assert not self._meanwhile, f"nothing waited in {step}"
            step["meanwhile"] = self._done_meanwhile
        step["should_stop"] = self.coordinator.should_stop()
        step["joined"] = self.coordinator.joined
        return step

    def _symbol(self, error):
        for name, known in self.errors.items():
            if error is known:
                return name
        if isinstance(error, RuntimeError) and str(error).startswith("Coordinator stopped"):
            return {"type": "RuntimeError", "message": str(error)}
        raise error  # a mistake in this script, or Ctrl-C

    def _perform(self, op, error=None, exc_info=False, thread=None, threads=None, timeout_ms=None,
                 grace_ms=None, ignore_live_threads=False, meanwhile=None):
        coordinator = self.coordinator
        if op == "request_stop":
            if error is None:
                return coordinator.request_stop()
            try:
                raise self.errors[error]
            except BaseException as caught:
                return coordinator.request_stop(sys.exc_info() if exc_info else caught)
        if op == "stop_on_exception":
            with coordinator.stop_on_exception():
                if error is not None:
                    raise self.errors[error]
            return None
        if op == "wait_for_stop":
            return coordinator.wait_for_stop(None if timeout_ms is None else timeout_ms / 1000)
        if op == "register_thread":
            self.registered.add(thread)
            return coordinator.register_thread(self.threads[thread])
        if op == "release":
            return self.threads[thread].release()
        if op == "join":
            arguments = {}
            if threads is not None:
                arguments["threads"] = [self.threads[name] for name in threads]
            if grace_ms is not None:
                arguments["stop_grace_period_secs"] = grace_ms / 1000
            self.joining = True
            try:
                return coordinator.join(ignore_live_threads=ignore_live_threads, **arguments)
            finally:
                self.joining = False
                self.registered = set()
        assert op in ("should_stop", "clear_stop", "raise_requested_exception"), op
        return getattr(coordinator, op)()


class Play:
    """Random operations, each chosen by the current state of the sequence."""

    # Grace periods. 10 ms if all threads stay alive, so that a replay in real time is quick; 100 ms if
    # some threads end meanwhile, which a replay must not miss; 10 s if no thread stays alive.
    SHORT_MS, FAIR_MS, LONG_MS = 10, 100, 10_000

    def __init__(self, module, rng):
        self.rng = rng
        clean = rng.choice([None, None, None, [], ["StopIteration"], ["LookupError"], ["OpError"],
                            ["ValueError", "OutOfRangeError"], ["RuntimeError"]])
        kinds = ["ValueError", "ValueError", "RuntimeError", "OutOfRangeError", "OutOfRangeError",
                 "StopIteration", "KeyError", "CancelledError", "KeyboardInterrupt", "SystemExit"]
        errors = {f"e{i}": rng.choice(kinds) for i in range(1, rng.randint(2, 4))}
        threads = {f"T{i}": rng.choice(["alive"] * 5 + ["finished", "never started"])
                   for i in range(1, rng.randint(2, 5))}
        self.sequence = Sequence(module, clean, errors, threads)

    def vector(self, name):
        actions = {self.report: 7, self.look: 5, self.wait: 3, self.clear: 2, self.register: 7,
                   self.release: 1, self.join: 4}
        for _ in range(self.rng.randint(3, 14)):
            self.rng.choices(list(actions), actions.values())[0]()
        return self.sequence.vector(name)

    def report(self):
        self.sequence.do(**self._report())

    def look(self):
        self.sequence.do(self.rng.choice(["should_stop"] + 3 * ["raise_requested_exception"]))

    def clear(self):
        self.sequence.do("clear_stop")

    def register(self):
        self.sequence.do("register_thread", thread=self.rng.choice(list(self.sequence.threads)))

    def release(self):
        alive = self.sequence.alive(self.sequence.threads)
        if alive:
            self.sequence.do("release", thread=self.rng.choice(alive))

    def wait(self):
        stopped = self.sequence.coordinator.should_stop()
        timeout = self.rng.choice([{"timeout_ms": 0}, {"timeout_ms": 5}, {}])
        if stopped or (timeout and self.rng.random() < 0.6):
            self.sequence.do("wait_for_stop", **timeout)
        else:
            meanwhile = [{"op": "request_stop"}]
            if self.rng.random() < 0.5:
                meanwhile.append({"op": "clear_stop"})
            timeout = self.rng.choice([{"timeout_ms": self.LONG_MS}, {}])
            self.sequence.do("wait_for_stop", **timeout, meanwhile=meanwhile)

    def join(self):
        rng, sequence = self.rng, self.sequence
        options = {}
        joined = set(sequence.registered)
        if rng.random() < 0.5:
            options["threads"] = rng.sample(
                list(sequence.threads), rng.randint(0, len(sequence.threads)))
            joined.update(options["threads"])
        if rng.random() < 0.2:
            options["ignore_live_threads"] = True

        alive, released = sequence.alive(joined), []
        waits = not sequence.coordinator.should_stop()
        if alive and (waits or rng.random() < 0.2):
            released = rng.choice([alive, alive, rng.sample(alive, rng.randint(0, len(alive)))])
            meanwhile = [{"op": "release", "thread": name} for name in released]
            for _ in range(rng.randint(0, 2)):
                meanwhile.insert(rng.randint(0, len(meanwhile)), rng.choice(
                    [self._report(), {"op": "clear_stop"}, {"op": "raise_requested_exception"}]))
            if waits and len(released) < len(alive):
                meanwhile.append({"op": "request_stop"})
            if meanwhile:
                options["meanwhile"] = meanwhile
        if len(released) == len(alive):
            grace = [None, self.LONG_MS] if released else [None, self.LONG_MS, 0]
        else:
            grace = [self.FAIR_MS] if "meanwhile" in options else [0, self.SHORT_MS]
        options["grace_ms"] = rng.choice(grace)
        if options["grace_ms"] is None:
            del options["grace_ms"]
        sequence.do("join", **options)

    def _report(self):
        """Requests a stop or reports an error, in a random one of the possible ways."""
        op = self.rng.choice(["request_stop"] * 3 + ["stop_on_exception"] * 2)
        if self.rng.random() < 0.25:
            return {"op": op}
        step = {"op": op, "error": self.rng.choice(list(self.sequence.errors))}
        if op == "request_stop" and self.rng.random() < 0.5:
            step["exc_info"] = True
        return step


def stop(error=None, **more):
    return {"op": "request_stop", **({} if error is None else {"error": error}), **more}


def body(error=None):
    return {"op": "stop_on_exception", **({} if error is None else {"error": error})}


def wait(timeout_ms=None, **more):
    return {"op": "wait_for_stop",
            **({} if timeout_ms is None else {"timeout_ms": timeout_ms}), **more}


def register(thread):
    return {"op": "register_thread", "thread": thread}


def release(thread):
    return {"op": "release", "thread": thread}


def join(**options):
    return {"op": "join", **options}


CLEAR, SHOULD, RAISE = (
    {"op": op} for op in ("clear_stop", "should_stop", "raise_requested_exception"))

# name, clean-stop types, errors, threads, operations
BY_HAND = [
    ("an end of input is a clean stop by default", None,
     {"e1": "OutOfRangeError"}, {}, [stop("e1"), RAISE, join()]),
    ("only an end of input is a clean stop by default", None,
     {"e1": "CancelledError"}, {}, [stop("e1"), RAISE, join()]),
    ("no clean-stop types: nothing is clean", [],
     {"e1": "OutOfRangeError"}, {}, [stop("e1"), RAISE, join()]),
    ("other clean-stop types replace the default", ["StopIteration"],
     {"e1": "OutOfRangeError", "e2": "StopIteration"}, {},
     [stop("e2"), RAISE, join(), CLEAR, stop("e1"), RAISE, join()]),
    ("a clean-stop type covers the types derived from it", ["LookupError"],
     {"e1": "KeyError"}, {}, [stop("e1", exc_info=True), RAISE, join()]),
    ("the first error wins", None, {"e1": "ValueError", "e2": "RuntimeError"}, {},
     [stop("e1"), stop("e2"), stop("e1"), body("e2"), stop(), RAISE, join()]),
    ("a plain stop wins over a later error", None, {"e1": "ValueError"}, {},
     [stop(), stop("e1"), body("e1"), RAISE, join()]),
    ("a clean stop wins over a later error", None,
     {"e1": "OutOfRangeError", "e2": "ValueError"}, {},
     [stop("e1"), stop("e2"), RAISE, join()]),
    ("looking at the error does not clear it", None, {"e1": "ValueError"}, {},
     [RAISE, stop("e1"), RAISE, RAISE, SHOULD]),
    ("after a join an error is thrown back and the flag stays unset", None,
     {"e1": "ValueError"}, {},
     [join(), stop("e1"), stop("e1", exc_info=True), body("e1"), RAISE, SHOULD, join()]),
    ("after a join a plain stop sets the flag", None, {}, {}, [join(), stop(), join()]),
    ("after a join a clean stop sets the flag", None, {"e1": "OutOfRangeError"}, {},
     [join(), stop("e1"), RAISE, join()]),
    ("after a failed join errors are thrown back, the recorded one too", None,
     {"e1": "ValueError", "e2": "RuntimeError"}, {},
     [stop("e1"), join(), stop("e1"), stop("e2"), RAISE, join()]),
    ("a wait with no time left looks", None, {}, {}, [wait(0), stop(), wait(0)]),
    ("a wait ends with a stop or with its time", None, {}, {},
     [wait(5), wait(10_000, meanwhile=[stop()]), wait(5), wait(), CLEAR,
      wait(meanwhile=[stop()])]),
    ("a negative timeout polls", None, {}, {}, [wait(-1), stop(), wait(-1)]),
    ("a body that ends normally changes nothing", None, {"e1": "ValueError"}, {},
     [body(), RAISE, stop("e1"), body(), RAISE, join(), body()]),
    ("a body's error is reported and swallowed", None, {"e1": "ValueError"}, {},
     [body("e1"), RAISE, join()]),
    ("a body's interrupt is reported and swallowed", None, {"e1": "KeyboardInterrupt"}, {},
     [body("e1"), join()]),
    ("a body's exit is reported and swallowed", None, {"e1": "SystemExit"}, {},
     [body("e1"), join(), body("e1")]),
    ("a body's end of input is a clean stop, after a join too", None,
     {"e1": "OutOfRangeError"}, {}, [body("e1"), RAISE, join(), CLEAR, join(), body("e1")]),
    ("clearing resets the flag, the error and joined", None,
     {"e1": "ValueError", "e2": "RuntimeError"}, {},
     [stop("e1"), join(), CLEAR, RAISE, stop("e2"), RAISE, join(), CLEAR, CLEAR, join()]),
    ("clearing leaves the registered threads registered", None, {}, {"T1": "alive"},
     [register("T1"), stop(), CLEAR, stop(), join(grace_ms=0)]),
    ("a stop that is cleared at once is seen by who waited", None, {"e1": "ValueError"}, {},
     [wait(meanwhile=[stop(), CLEAR]), wait(10_000, meanwhile=[stop("e1"), CLEAR]), wait(0)]),
    ("a stop that is cleared at once ends a join that had begun", None, {}, {"T1": "alive"},
     [join(threads=["T1"], grace_ms=100, meanwhile=[stop(), CLEAR])]),
    ("an error that is cleared before a join ends is not thrown by it", None,
     {"e1": "ValueError", "e2": "RuntimeError"}, {"T1": "alive", "T2": "alive"},
     [register("T1"), join(meanwhile=[stop("e1"), release("T1"), CLEAR]), CLEAR,
      register("T2"), join(meanwhile=[stop("e1"), CLEAR, stop("e2"), release("T2")])]),
    ("a join in its grace goes on when the stop is cleared", None, {"e1": "ValueError"},
     {"T1": "alive"},
     [register("T1"), stop("e1"), join(grace_ms=10_000, meanwhile=[CLEAR, release("T1")])]),
    ("nothing alive and no stop: a join succeeds", None, {}, {"T1": "finished"},
     [join(), join(threads=[]), join(threads=["T1"]), register("T1"), join(), SHOULD]),
    ("a thread that never started counts as finished", None, {}, {"T1": "never started"},
     [join(threads=["T1"]), register("T1"), stop(), join(threads=["T1"], grace_ms=0)]),
    ("a finished thread is no straggler, without any grace", None, {},
     {"T1": "finished", "T2": "alive"},
     [stop(), join(threads=["T1"], grace_ms=0), register("T1"), register("T2"), release("T2"),
      join(grace_ms=0)]),
    ("a join waits until all have ended", None, {}, {"T1": "alive", "T2": "alive"},
     [register("T1"), join(threads=["T2"], meanwhile=[release("T2"), SHOULD, release("T1")])]),
    ("a join waits for registered and passed threads, each once", None, {},
     {"T1": "alive", "T2": "alive", "T3": "alive"},
     [register("T1"), register("T2"), register("T1"), stop(),
      join(threads=["T2", "T3", "T3"], grace_ms=0)]),
    ("threads may end during the grace", None, {}, {"T1": "alive", "T2": "alive"},
     [register("T1"), register("T2"), stop(),
      join(grace_ms=10_000, meanwhile=[release("T1"), release("T2")])]),
    ("only those that outlive the grace are stragglers", None, {},
     {"T1": "alive", "T2": "alive"},
     [register("T1"), register("T2"), stop(), join(grace_ms=100, meanwhile=[release("T1")])]),
    ("an error during the grace is not recorded, a stop being there", None,
     {"e1": "ValueError"}, {"T1": "alive"},
     [register("T1"), stop(), join(meanwhile=[stop("e1"), release("T1")])]),
    ("the stop that ends a join's wait brings its error", None, {"e1": "ValueError"},
     {"T1": "alive"},
     [register("T1"), join(grace_ms=100, meanwhile=[stop("e1")]), SHOULD]),
    ("live threads can be ignored", None, {}, {"T1": "alive"},
     [register("T1"), stop(), join(grace_ms=0, ignore_live_threads=True)]),
    ("the recorded error beats stragglers", None, {"e1": "ValueError"}, {"T1": "alive"},
     [register("T1"), stop("e1"), join(grace_ms=0)]),
    ("ignoring live threads does not ignore the recorded error", None, {"e1": "ValueError"},
     {"T1": "alive"}, [register("T1"), stop("e1"), join(grace_ms=0, ignore_live_threads=True)]),
    ("joining again raises the same error", None, {"e1": "ValueError"}, {"T1": "alive"},
     [stop("e1"), join(), join(), join(threads=["T1"], grace_ms=0)]),
    ("stragglers are forgotten by the next join", None, {}, {"T1": "alive", "T2": "alive"},
     [register("T1"), stop(), join(threads=["T2"], grace_ms=0), join(),
      join(threads=["T2"], grace_ms=0), register("T1"), join(grace_ms=0)]),
    ("a clean-stop type is no matter to stragglers", ["RuntimeError"], {"e1": "RuntimeError"},
     {"T1": "alive"}, [register("T1"), stop("e1"), join(grace_ms=0)]),
    # In these, TensorFlow and allstop differ.
    ("a falsy error", None, {"e1": "FalsyError"}, {},
     [stop("e1"), RAISE, join(), stop("e1")]),
    ("a thread registered while a join waits", None, {}, {"T1": "alive", "T2": "alive"},
     [register("T1"), join(meanwhile=[register("T2"), release("T1")]), stop(), join(grace_ms=0)]),
    ("a negative grace", None, {}, {"T1": "alive"}, [register("T1"), stop(), join(grace_ms=-1)]),
]


def record(module, seed, count):
    for name, clean, errors, threads, operations in BY_HAND:
        sequence = Sequence(module, clean, errors, threads)
        for operation in operations:
            sequence.do(**operation)
        yield sequence.vector(name)
    rng = random.Random(seed)
    for i in range(1, count + 1):
        yield Play(module, rng).vector(f"random {i}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("coordinator_py", metavar="COORDINATOR_PY")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=400, help="random sequences (400)")
    arguments = parser.parse_args()

    with open(arguments.coordinator_py, encoding="utf-8") as file:
        source = plain_source(file.read())
    vectors = list(record(load_coordinator(source), arguments.seed, arguments.count))

    header = {
        "source": "tensorflow/python/training/coordinator.py",
        "sha256": hashlib.sha256(source.encode()).hexdigest(),  # the hash of the file, not of the page
        "seed": arguments.seed,
    }
    # One sequence per line, so that a diff of the fixture is readable.
    print(json.dumps(header)[:-1] + ', "vectors": [')
    print(",\n".join(json.dumps(vector, separators=(",", ":")) for vector in vectors))
    print("]}")

    steps = [step for vector in vectors for step in vector["steps"]]
    steps += [inner for step in steps for inner in step.get("meanwhile", [])]
    counts = collections.Counter(
        step["op"] + (" raised" if "raised" in step else "") for step in steps)
    print(len(vectors), "vectors,", len(steps), "steps:",
          ", ".join(f"{op} {n}" for op, n in sorted(counts.items())), file=sys.stderr)


if __name__ == "__main__":
    main()
