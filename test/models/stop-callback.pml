/* A stop callback that runs on the thread of a stop, while another thread removes it.

   Modelled: one StopCallback of a coordinator; two threads that request stops (one of them
   clears and requests again); the callback's owner, a thread that registers it, removes it
   and then frees the memory that its function uses; and the function itself, which may remove the callback from
   within, and calls the coordinator.
   Files: native/core/stop_callback.h, coordinator.cc (OnStop, RemoveStopCallback, Latch),
   coordinator_effects.h (RunCallback).

   One step is a section under the mutex, or a part of the function's run.
   Abstracted: the vector callbacks_ is one bit; memory is sequentially consistent.
   Bound: two requests by the first thread, one by the second. All runs are finite.

   verify: safety
   verify: listedWaits
   verify: removalEnds fair
   mutant: UNCHECKED safety
   mutant: NO_WAIT safety
   mutant: SELF_WAIT safety
   mutant: LOCKED safety
   mutant: NOT_NOTIFIED removalEnds fair */

mtype:phase = { kWaiting, kRunning, kDone };

/* Guarded by the mutex. */
bool mutex;
bool stopped;             /* record_ != nullptr */
bool listed;              /* it is in callbacks_ */
mtype:phase phase = kWaiting;
byte runner;              /* runner_: process number, 0 = none */
bool asleep;              /* its owner sleeps on callback_done_ */

bool made;                /* the owner holds a registration */
bool removing;            /* RemoveStopCallback has been called by the owner */
bool removed;             /* ... and has returned */
bool freed;               /* the memory that the function uses is freed */
byte runs;

/* The function's run, on any thread. stop_callback.h promises one run ("with the guarantees of
   std::stop_callback"). */
inline RunFunction() {
  atomic { assert(!freed && !removed); runs++; assert(runs == 1) };
  if
  :: atomic { /* the function calls the coordinator: no lock is held (invariant 5) */
      !mutex -> skip
    }
  :: /* the function removes its own callback: RemoveStopCallback */
#ifdef MUTANT_SELF_WAIT
    atomic { !mutex -> assert(phase == kRunning) };
    phase == kDone
#else
    atomic { !mutex -> assert(phase == kRunning && runner == _pid) } /* returns at once */
#endif
  fi;
  assert(!freed) /* the last of its run */
}

/* RequestStop: Latch takes the callbacks, the effects run them. */
inline RequestStop() {
  atomic {
    !mutex ->
    taken = false;
    if
    :: !stopped -> stopped = true; taken = listed; listed = false
    :: else
    fi
  };
  if
  :: taken ->
    taken = false;
#ifdef MUTANT_UNCHECKED
    atomic { !mutex -> phase = kRunning; runner = _pid; mustRun = true };
#else
    atomic {
      !mutex ->
      if
      :: phase == kDone -> mustRun = false /* removed meanwhile */
      :: else -> phase = kRunning; runner = _pid; mustRun = true
      fi
    };
#endif
    if
    :: mustRun ->
      mustRun = false;
#ifdef MUTANT_LOCKED
      atomic { !mutex -> mutex = true };
      RunFunction();
      atomic { phase = kDone; mutex = false };
#else
      RunFunction();
      atomic { !mutex -> phase = kDone };
#endif
#ifndef MUTANT_NOT_NOTIFIED
      asleep = false /* callback_done_.notify_all() */
#endif
    :: else
    fi
  :: else
  fi
}

active proctype First() {
  bool taken, mustRun;
  RequestStop();
  if
  :: atomic { !mutex -> stopped = false }; RequestStop() /* ClearStop */
  :: true
  fi
}

active proctype Second() {
  bool taken, mustRun;
  RequestStop()
}

active proctype Owner() {
  bool isOver;
  /* OnStop */
  atomic {
    !mutex ->
    if
    :: !stopped -> listed = true; made = true
    :: else -> isOver = true /* it runs here and now, and nothing is registered */
    fi
  };
  if
  :: isOver -> atomic { assert(!freed); runs++ }
  :: else ->
    if
    :: true -> /* RemoveStopCallback */
      atomic { !mutex -> removing = true; mutex = true };
      if
      :: phase == kWaiting -> atomic { phase = kDone; listed = false; mutex = false }
      :: else ->
#ifdef MUTANT_NO_WAIT
        mutex = false
#else
        do
        :: phase == kDone -> break
        :: else ->
          atomic { asleep = true; mutex = false };
          !asleep;
          atomic { !mutex -> mutex = true }
        od;
        mutex = false
#endif
      fi;
      atomic { removed = true; freed = true }
    :: true /* it stays registered */
    fi
  fi
}

/* Safety: the asserts in RunFunction. Invariant 5 (coordinator.cc) and coordinator.h,
   RemoveStopCallback: "After it has returned, the function is not running and never will";
   stop_callback.h: "A callback runs at most once". */

/* Invariant 5: "in callbacks_ exactly while it is kWaiting and no stop has taken it". */
ltl listedWaits { [] (listed -> phase == kWaiting) }

/* coordinator.cc, "Nothing deadlocks": RemoveStopCallback ends. */
ltl removalEnds { [] (removing -> <> removed) }
