/* The end of a JavaScript environment, while native threads go on.

   Modelled: an environment with an attachment to coordinator 0, which may be collected, and
   then one to coordinator 1, which gets the same slot; its doorbell with the thread-safe
   function; a thread of coordinator 0 that the environment observes; the cleanup hook
   (Environment::Close), Node's freeing of the thread-safe function and of the slabs, and a
   finalizer that Node runs after that. Meanwhile a native thread stops each coordinator, and
   another one joins coordinator 0.
   Files: native/binding/environment.cc, attachment.cc (Detach, Close, ~Attachment), doorbell.cc,
   native/include/allstop/allstop_threadsafe_function.hpp, native/core/coordinator.cc
   (AddObserver, RemoveObserver, Latch), coordinator_effects.h, coordinator_threads.cc
   (EndThreadsOwnedBy).

   One step is a section under one mutex, the store to a mirror, or a call of Node-API.
   Abstracted: the event loop answers a ring, or not, whenever it likes; the join is a wait for
   the observed thread; the module stays in memory (allstop_pin_module). All runs are finite.

   verify: safety
   verify: joinEnds fair
   verify: closes fair
   verify: letGo
   mutant: UNLOCKED_CALL safety
   mutant: HOOK_LATE safety
   mutant: BARE_OBSERVER safety
   mutant: MIRROR_KEPT safety
   mutant: SLOT_FIRST safety
   mutant: DETACHED_TWICE safety
   mutant: UNOBSERVED_FORGOTTEN joinEnds fair */

/* Of each coordinator, guarded by its mutex. */
bool mutex[2];
bool stopped[2];
bool listed[2];           /* its observers_ has the environment's observer */
bool hasMirror[2];        /* Observer::mirror_ */
bool threadAlive = true;  /* of coordinator 0: the thread that the environment observes */
bool asleep;              /* the native join sleeps */

/* Of each attachment: the number of shared_ptrs to its observer. */
byte references[2];
bool attached[2];         /* Attachment::observer_ */

/* The slot: the coordinator that may write to it, + 1; 0 = free. */
byte slotOwner;
bool slabsFreed;          /* the environment's memory is gone */

/* The doorbell, and allstop::ThreadsafeFunction. */
bool rung;
bool hasFunction = true;  /* function_ != nullptr, guarded by its own mutex */
bool functionFreed;       /* Node has let go of it */
byte calls;

bool joinOver;
bool isClosed;            /* the environment is gone */

/* Ringer::OnStop, Doorbell::Ring. */
inline Ring(c) {
  assert(references[c] > 0); /* coordinator.cc, "Lifetime": effects hold references to all that they touch */
  atomic {
    mustCall = !rung;
    rung = true
  };
  if
  :: mustCall ->
#ifdef MUTANT_UNLOCKED_CALL
    mustCall = hasFunction;
    if
    :: mustCall -> CallFunction()
    :: else -> rung = false
    fi
#else
    atomic { /* ThreadsafeFunction::Call: under the mutex that Close takes as well */
      if
      :: hasFunction -> CallFunction()
      :: else -> rung = false
      fi
    }
#endif
  :: else
  fi;
  mustCall = false
}

/* napi_call_threadsafe_function. allstop_threadsafe_function.hpp: "Node 20 and 22 abort the
   process when a thread touches a thread-safe function whose worker has ended". */
inline CallFunction() { assert(!functionFreed); calls++ }

/* Latch and its effects. A mirror is written only while its environment lives, and only the
   slot of this coordinator (invariant 7; environment.h, ReleaseSlot). */
inline Stop(c) {
  atomic {
    !mutex[c] -> mutex[c] = true;
    mustRing = listed[c] && !stopped[c];
    mustWrite = hasMirror[c] && !stopped[c];
    stopped[c] = true;
#ifndef MUTANT_BARE_OBSERVER
    if :: mustRing -> references[c]++ :: else fi
#endif
  };
  if
  :: mustWrite -> atomic { assert(!slabsFreed && slotOwner == c + 1); mustWrite = false }
  :: else
  fi;
  mutex[c] = false;
  if
  :: mustRing -> Ring(c);
#ifndef MUTANT_BARE_OBSERVER
    references[c]--;
#endif
    mustRing = false
  :: else
  fi
}

proctype Stopper(byte c) {
  bool mustRing, mustWrite, mustCall;
  Stop(c)
}

proctype Joiner() {
  atomic { !mutex[0] -> mutex[0] = true };
  do
  :: !threadAlive -> break
  :: else -> atomic { asleep = true; mutex[0] = false };
    !asleep;
    atomic { !mutex[0] -> mutex[0] = true }
  od;
  atomic { mutex[0] = false; joinOver = true }
}

/* Attachment::Attachment: AcquireSlot, AddObserver, and interest. */
inline Attach(c) {
  atomic { assert(slotOwner == 0); slotOwner = c + 1; references[c] = 1; attached[c] = true };
  atomic { !mutex[c] -> references[c]++; listed[c] = true; hasMirror[c] = true }
}

inline RemoveObserver(c) {
  atomic {
    !mutex[c] ->
    if :: listed[c] -> listed[c] = false; references[c]-- :: else fi;
#ifndef MUTANT_MIRROR_KEPT
    hasMirror[c] = false
#endif
  }
}

inline ReleaseSlot(c) {
  atomic {
    assert(slotOwner == c + 1); /* environment.h: once, and by its owner */
    slotOwner = 0
  }
}

inline Detach(c) {
#ifdef MUTANT_SLOT_FIRST
  ReleaseSlot(c);
  RemoveObserver(c);
#else
  RemoveObserver(c);
  ReleaseSlot(c); /* only now, when the core writes to it no more */
#endif
#ifndef MUTANT_DETACHED_TWICE
  attached[c] = false;
#endif
  references[c]--
}

/* Environment::Close. */
inline Close() {
  atomic { hasFunction = false }; /* Doorbell::Close */
#ifndef MUTANT_UNOBSERVED_FORGOTTEN
  /* EndThreadsOwnedBy: a stop, if there is none, and the end of the threads. */
  Stop(0);
  atomic { !mutex[0] -> threadAlive = false };
  asleep = false; /* notify_all */
#endif
  if :: attached[0] -> Detach(0) :: else fi;
  if :: attached[1] -> Detach(1) :: else fi
}

proctype Environment() {
  bool mustRing, mustWrite, mustCall;
  Attach(0);
  if
  :: Detach(0); Attach(1) /* ~Attachment: collected; its slot is used again */
  :: true
  fi;
  do
  :: atomic { calls > 0 -> calls--; rung = false } /* Doorbell::Answer */
  :: break
  od;
  /* Cleanup hooks run in the reverse order of their registration: that of the environment,
     which was registered after the thread-safe function was made, comes first. */
#ifdef MUTANT_HOOK_LATE
  atomic { functionFreed = true };
  Close();
#else
  Close();
  atomic { hasFunction = false; functionFreed = true };
#endif
  atomic { slabsFreed = true; slotOwner = 0 };
  /* Node may run the finalizers of attachments now. */
  if :: attached[0] -> Detach(0) :: else fi;
  if :: attached[1] -> Detach(1) :: else fi;
  isClosed = true
}

init { atomic { run Environment(); run Stopper(0); run Stopper(1); run Joiner() } }

/* Safety: the asserts in Ring, CallFunction, Stop and ReleaseSlot. */

/* environment.h, Watch; api.md 1.7: threads "end as unobserved when this ends", so no
   join waits for them after that. */
ltl joinEnds { <> joinOver }

/* The end of an environment waits for no other thread (design.md, decision 4). */
ltl closes { <> isClosed }

/* Afterwards the core holds nothing of the environment. */
ltl letGo { [] (isClosed -> (!listed[0] && !listed[1] && !hasMirror[0] && !hasMirror[1])) }
