/* The wake path: how a stop reaches the threads of one coordinator.

   Modelled: requestStop and clearStop of two native threads and of a JavaScript thread; one
   native thread blocked in WaitForStop; the JavaScript thread's attachment with its mirror,
   interest, doorbell, waitForStop(), signal, and its own requests (quiet, then drained).
   Files: native/core/coordinator.cc, coordinator_effects.h, native/binding/doorbell.cc,
   attachment.cc, lib/native/native.ts, lib/coordinator/attachment.ts.

   One step of the model is: a section under a mutex that touches only what the mutex guards;
   a load or a store of a mirror's word; the call of a thread-safe function; a notify_all.
   Abstracted: memory is sequentially consistent (the release stores are in program order);
   the record is the number of its stop; the core's own stop word is left out, as it obeys the
   rule of the mirror's flag; one attachment, and one pending wait of JavaScript at a time; no
   deadlines, errors, children or joins.
   Bound: STOPS requests by native threads, JS_CALLS calls by the JavaScript thread. Every run
   is finite, so "eventually" in an ltl claim means: before nothing more can happen.

   verify: safety -DJS_CALLS=2
   verify: safety -DWITHOUT_WAITER
   verify: nativeWait -DJS_CALLS=1
   verify: promise -DWITHOUT_WAITER
   verify: standing -DWITHOUT_WAITER
   verify: signal -DWITHOUT_WAITER
   verify: oneRing -DWITHOUT_WAITER
   mutant: NOTIFY_FIRST nativeWait -DJS_CALLS=1
   mutant: SLEEP_LATE nativeWait -DJS_CALLS=1
   mutant: FLAG_ONLY nativeWait -DJS_CALLS=1
   mutant: FLAG_FIRST safety -DWITHOUT_WAITER
   mutant: NO_UNSEEN signal -DWITHOUT_WAITER
   mutant: LATE_INTEREST promise -DWITHOUT_WAITER
   mutant: NO_RECHECK standing -DWITHOUT_WAITER
   mutant: NO_DRAIN promise -DWITHOUT_WAITER
   mutant: RUNG_LATE promise -DWITHOUT_WAITER */

#ifndef STOPS
#define STOPS 2
#endif
#ifndef JS_CALLS
#define JS_CALLS 3
#endif

/* Guarded by the coordinator's mutex (coordinator.h). */
bool mutex;
byte generation;          /* generation_ */
byte record;              /* record_: the generation of the stop that stands, 0 = null */
bool interested;          /* Observer::interested_ */
byte unseen;              /* Observer::unseen_, 0 = null */
byte waiters;             /* waiters_ */
bool asleep;              /* the native thread sleeps on stop_changed_ */

/* Mirror: written under the mutex, read without. */
byte mirrorGeneration;
bool mirrorStopped;

/* Doorbell: dirty and rung are guarded by its own mutex, every section of which is one step. */
bool dirty;               /* the button's is_dirty_ */
bool rung;
byte calls;               /* of the thread-safe function, queued for the event loop */

/* lib/coordinator/attachment.ts: the JavaScript thread's own. */
bool watching;            /* #interested */
byte seen;                /* #seen */
bool waiting;             /* #waits is not empty */
bool hasController;       /* #controller */
bool aborted;
byte abortedAt;           /* #abortedAt */

/* A budget, and variables that only the properties read. */
byte stopsLeft = STOPS;
byte waitSince;           /* a stop after this generation ends the pending wait */
byte signalSince;         /* a stop after this generation aborts the signal */
bool blocked;             /* the native thread is in WaitForStop */
byte blockedSince;

#define signalling (hasController && !aborted)

/* Invariant 1 (coordinator.cc): whenever the mutex is free, the mirror agrees with the state.
   Invariant 2 (coordinator.cc): the generation is that of the record while one stands. */
#define AGREE assert(mirrorStopped == (record != 0) && mirrorGeneration == generation && \
                     (record == 0 || record == generation))

/* ------------------------------------------------------------ doorbell.cc */

/* Doorbell::Ring. `quiet`: on the bell's own JavaScript thread (Doorbell::Quiet). */
inline Ring(quiet) {
  atomic {
    dirty = true;
    if
    :: rung || quiet -> mustCall = false
    :: else -> rung = true; mustCall = true
    fi
  };
  if
  :: mustCall -> atomic { calls++; mustCall = false }
  :: else
  fi
}

/* ------------------------------------------------------------ coordinator.cc */

inline NotifyAll() { asleep = false }

/* Coordinator::RequestStop: Decide and Latch under the mutex, then the effects. */
inline RequestStop(quiet) {
#ifdef MUTANT_NOTIFY_FIRST
  if :: waiters > 0 -> NotifyAll() :: else fi;
#endif
  atomic {
    !mutex -> AGREE;
    mustNotify = false; mustRing = false; latching = false;
    if
    :: record != 0 /* kAlreadyStopped */
    :: else ->
      mutex = true; latching = true;
      mustNotify = waiters > 0; mustRing = interested;
      generation++; record = generation
    fi
  };
  if
  :: latching ->
#ifdef MUTANT_FLAG_FIRST
    mirrorStopped = true;
    mirrorGeneration = generation;
#else
    mirrorGeneration = generation; /* Coordinator::Update: the flag last */
    mirrorStopped = true;
#endif
    atomic {
      if :: interested && unseen == 0 -> unseen = record :: else fi;
      mutex = false; latching = false
    };
#ifndef MUTANT_NOTIFY_FIRST
    if :: mustNotify -> NotifyAll() :: else fi;
#endif
    if :: mustRing -> Ring(quiet) :: else fi;
    mustNotify = false; mustRing = false
  :: else
  fi
}

/* Coordinator::ClearStop. OnClear does nothing (attachment.cc). */
inline ClearStop() {
  atomic { !mutex -> AGREE; mutex = true; record = 0 };
  mirrorGeneration = generation;
  mirrorStopped = false;
  mutex = false
}

proctype NativeRequester() {
  bool mustCall, mustNotify, mustRing, latching;
  do
  :: atomic { stopsLeft > 0 -> stopsLeft-- };
     RequestStop(false);
     if
     :: ClearStop()
     :: true
     fi
  :: break
  od
}

/* Coordinator::WaitForStop(generation(), Deadline::Never()). */
proctype NativeWaiter() {
  byte since;
  atomic { !mutex -> AGREE; since = generation };
  atomic { !mutex -> AGREE; mutex = true; waiters++; blocked = true; blockedSince = since };
  do
#ifdef MUTANT_FLAG_ONLY
  :: record != 0 -> break
#else
  :: record != 0 || generation != since -> break
#endif
  :: else ->
#ifdef MUTANT_SLEEP_LATE
    mutex = false;
    asleep = true;
#else
    atomic { asleep = true; mutex = false }; /* a condition variable does both at once */
#endif
end_asleep:
    !asleep;
    atomic { !mutex -> AGREE; mutex = true }
  od;
  /* coordinator.h, WaitForStop: "true = stopped". */
  assert(record != 0 || generation > since);
  atomic { waiters--; blocked = false; mutex = false }
}

/* ------------------------------------------------------------ attachment.ts */

inline TakeUnseen(to) { atomic { !mutex -> AGREE; to = unseen; unseen = 0 } }

inline SetInterested(value) {
  atomic {
    !mutex -> AGREE;
    if :: interested != value -> unseen = 0 :: else fi;
    interested = value
  }
}

/* #watch: the generation that setInterested returns is where news begins. */
inline Watch() {
  if
  :: watching
  :: else ->
    watching = true;
#ifdef MUTANT_LATE_INTEREST
    atomic { !mutex -> seen = generation };
    SetInterested(true)
#else
    atomic {
      !mutex -> AGREE;
      if :: !interested -> unseen = 0 :: else fi;
      interested = true;
      seen = generation
    }
#endif
  fi
}

inline Unwatch() {
  if
  :: watching && !signalling && !waiting -> watching = false; SetInterested(false)
  :: else
  fi
}

/* #abort. The signal aborts with a stop that came after it was handed out, or stood then. */
inline Abort(stop) {
  assert(stop > signalSince);
  aborted = true; abortedAt = stop
}

inline Check() {
  if
  :: watching ->
    got = mirrorGeneration;
    if
    :: got != seen ->
      atomic { seen = got; waiting = false };
      if
      :: signalling ->
#ifdef MUTANT_NO_UNSEEN
        stop = 0;
#else
        TakeUnseen(stop);
#endif
        if :: stop == 0 -> atomic { !mutex -> AGREE; stop = record } :: else fi;
        if :: stop != 0 -> atomic { Abort(stop) } :: else fi;
        stop = 0
      :: else
      fi
    :: else
    fi;
    got = 0;
    Unwatch()
  :: else
  fi
}

/* #isStopped. A caller that learns of a stop finds the signal aborted, too. */
inline IsStopped() { Check(); assert(!signalling) }

/* native.ts: drain. */
inline Drain() {
  atomic { hasNews = dirty; dirty = false };
  if :: hasNews -> hasNews = false; Check() :: else fi
}

/* doorbell.cc: Answer. With one button: the token comes along, unless another call took it. */
inline Answer() {
#ifdef MUTANT_RUNG_LATE
  Drain();
  rung = false
#else
  atomic { rung = false; hasNews = dirty; dirty = false };
  if :: hasNews -> hasNews = false; Check() :: else -> Drain() fi
#endif
}

/* waitForStop(), until it returns its promise. */
inline WaitForStop() {
  if
  :: mirrorStopped -> IsStopped()
  :: else ->
    Check();
    atomic { waitSince = seen; isNew = !watching };
    Watch();
    atomic {
      if :: isNew -> waitSince = seen :: else -> waitSince = (waitSince > seen -> waitSince : seen) fi;
      waiting = true; isNew = false
    };
#ifndef MUTANT_NO_RECHECK
    if :: mirrorStopped -> IsStopped(); waiting = false; Unwatch() :: else fi
#endif
  fi
}

/* The getter `signal`. */
inline Signal() {
  Check();
  Watch();
  if
  :: !signalling -> atomic { !mutex -> AGREE; unseen = 0; floor = generation }
  :: else -> floor = signalSince
  fi;
  atomic { !mutex -> AGREE; stop = record };
  atomic {
    if
    :: !hasController || (aborted && stop != abortedAt) ->
      hasController = true; aborted = false; abortedAt = 0;
      signalSince = (stop != 0 && stop <= floor -> stop - 1 : floor)
    :: else
    fi;
    if :: stop != 0 && !aborted -> Abort(stop) :: else fi;
    stop = 0; floor = 0
  };
  Unwatch()
}

proctype JavaScript() {
  byte left = JS_CALLS;
  byte got, stop, floor;
  bool mustCall, mustNotify, mustRing, latching, hasNews, isNew;
end:
  do
  :: atomic { left > 0 && !waiting -> left-- }; WaitForStop()
  :: atomic { left > 0 && !signalling -> left-- }; Signal()
  :: atomic { left > 0 -> left-- };
     RequestStop(true);
#ifndef MUTANT_NO_DRAIN
     Drain(); Check();
     /* api.md 1.11: requestStop aborts this thread's signal before it returns; the signal of
        a stop that another thread made at the same time, too, if the mirrors tell of it. */
     assert(!signalling || !mirrorStopped || mirrorGeneration == signalSince)
#endif
  :: atomic { left > 0 -> left-- }; Drain(); Check(); ClearStop(); Drain()
  :: atomic { left > 0 && waiting -> left-- }; /* the wait's timer: it ends without a stop */
     if :: mirrorStopped -> IsStopped() :: else fi;
     waiting = false; Unwatch()
  :: atomic { calls > 0 -> calls-- }; Answer()
  od
}

init {
  atomic {
    run NativeRequester(); run NativeRequester();
#ifndef WITHOUT_WAITER
    run NativeWaiter();
#endif
    run JavaScript()
  }
}

/* The valid end is the JavaScript thread parked in its event loop, and the native waiter, if
   no stop came after its wait began: everything else that blocks is a deadlock. */

/* coordinator.cc, "No wake-up is lost": a stop ends every wait that had begun, also if it is
   cleared at once (invariant 2). */
ltl nativeWait { [] ((blocked && generation > blockedSince) -> <> !blocked) }

/* attachment.ts, waitForStop; api.md 1.5: the same for a pending promise. */
ltl promise { [] ((waiting && generation > waitSince) -> <> !waiting) }

/* attachment.ts, waitForStop ("it came before we watched"): nothing waits beside a stop that
   stands. */
ltl standing { [] ((waiting && record != 0) -> <> (!waiting || record == 0)) }

/* attachment.ts, check; api.md 1.5 and 1.11: a signal that was handed out aborts with the
   first stop after that, also if it is cleared at once. */
ltl signal { [] ((signalling && generation > signalSince) -> <> aborted) }

/* doorbell.h: "rung at most once until answered". */
ltl oneRing { [] (calls <= 1) }
