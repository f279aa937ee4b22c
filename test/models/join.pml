/* The join: threads, the stop, the grace period, the arbiter's answer, and hooks.

   Modelled: one coordinator with a thread that is alive, and one that is registered and starts
   later; a request that stops it (its record is provisional until an arbiter has answered, with
   another record or with none); a join of JavaScript (BeginJoin, then its progress on news, on
   its timer and on setImmediate) and a blocking join of a native thread, both at once; two
   hooks of the JavaScript thread.
   Files: native/core/coordinator_threads.cc, coordinator.cc (Latch, Settle, AnswerStop,
   AnswerNone, ClearStop), coordinator_effects.h, lib/coordinator/attachment.ts (join).

   THE CONTRACT'S, not yet in the code: hooks (api.md 8.2). A hook is an entry of kind 'hook',
   alive from the stop until it has ended; before the stop it holds up nothing. The hooks of a
   thread run one after the other, the last registered first.

   One step is a section under the mutex; the effects (a ring, a notify_all) are steps of their
   own, after it. That a ring reaches the event loop is wake.pml's to show: here it is a bit.
   Abstracted: time. The grace period of a join is over at some moment after the stop that the
   join has seen, or never (a thread that hangs); the timer fires then or later. Errors: a record
   has one. Bound: the threads and joins above; one stop, which ClearStop does not clear while an
   answer is awaited (clearable_): the mutant CLEARS clears it, and its join never ends.

   verify: safety -DWITHOUT_NATIVE
   verify: safety -DWITHOUT_SCRIPT
   verify: safety -DWITHOUT_HOOKS -DWITHOUT_LATE_THREAD
   verify: scriptEnds fair -DWITHOUT_NATIVE -DWITHOUT_LATE_THREAD
   verify: nativeEnds fair -DWITHOUT_SCRIPT -DWITHOUT_LATE_THREAD
   verify: scriptUnstopped fair -DWITHOUT_NATIVE -DWITHOUT_HOOKS
   verify: nativeUnstopped fair -DWITHOUT_SCRIPT -DWITHOUT_HOOKS
   verify: nativeAnswered fair -DWITHOUT_SCRIPT -DWITHOUT_LATE_THREAD
   verify: thrownStands -DWITHOUT_NATIVE -DWITHOUT_LATE_THREAD
   mutant: FINISH_UNCHECKED safety -DWITHOUT_NATIVE -DWITHOUT_HOOKS
   mutant: BEGIN_UNCOUNTED safety -DWITHOUT_NATIVE -DWITHOUT_HOOKS
   mutant: ENDS_PROVISIONAL safety -DWITHOUT_NATIVE -DWITHOUT_LATE_THREAD
   mutant: LATE_HOOKS safety -DWITHOUT_NATIVE -DWITHOUT_LATE_THREAD
   mutant: HOOKS_FORWARD safety -DWITHOUT_NATIVE -DWITHOUT_LATE_THREAD
   mutant: ENDS_SILENTLY nativeUnstopped fair -DWITHOUT_SCRIPT -DWITHOUT_HOOKS
   mutant: CLEARS nativeAnswered fair -DWITHOUT_SCRIPT -DWITHOUT_LATE_THREAD
   mutant: ANSWERS_SILENTLY nativeEnds fair -DWITHOUT_SCRIPT -DWITHOUT_LATE_THREAD */

#define HOOKS 2
#ifdef WITHOUT_HOOKS
#define HOOKS_ENDED true
#else
#define HOOKS_ENDED (hookEnded[0] && hookEnded[1])
#endif
#define NONE 255

/* Guarded by the mutex. */
byte record;              /* record_: 0 = null, 1 = the request's, 2 = the arbiter's */
bool awaitsAnswer;        /* awaits_answer_ */
bool provisional;         /* the record's awaits_answer */
bool answered;            /* the arbiter has answered */
bool alive[2];            /* of the two threads */
bool hookAlive[HOOKS];
bool hookEnded[HOOKS];
byte waiters;             /* waiters_ */

/* Of each join: 0 is JavaScript's, 1 the native one. */
bool inProgress[2];       /* listed in joins_ */
byte joinAlive[2];        /* Join::alive_ */
byte joinStop[2];         /* Join::stop_ */
bool isOver[2];           /* FinishJoin has ended it */
byte thrown[2];           /* the record whose error it has thrown */

bool rung;                /* news for the JavaScript thread */
bool asleep;              /* the native join sleeps on join_changed_ */
bool graceOver[2];        /* its grace period is over */
bool mayHang;             /* a thread or a hook may never end */

#define COUNT(join) (alive[0] + alive[1] + hookAlive[0] + hookAlive[1])

/* Invariant 4: a join counts the entries of its snapshot that are alive. Both threads are
   registered before the joins begin. */
inline Counted() {
  assert(!inProgress[0] || joinAlive[0] == COUNT(0));
  assert(!inProgress[1] || joinAlive[1] == COUNT(1))
}

inline NotifyAll() { asleep = false }

/* Coordinator::Ended, under the mutex: notes which joins to notify after it is released. */
inline Ended() {
  j = 0;
  do
  :: j < 2 ->
    if
    :: inProgress[j] ->
      joinAlive[j]--;
      if :: joinAlive[j] == 0 -> if :: j == 0 -> mustRing = true :: else -> mustNotify = true fi :: else fi
    :: else
    fi;
    j++
  :: else -> break
  od;
  j = 0;
  Counted()
}

inline Effects() {
  if :: mustNotify -> NotifyAll(); mustNotify = false :: else fi;
  if :: mustRing -> rung = true; mustRing = false :: else fi
}

/* ------------------------------------------------------------ the threads */

/* Registered and alive (StartThread came with it). */
proctype Thread() {
  byte j;
  bool mustRing, mustNotify;
  if
  :: mayHang -> goto hangs
  :: true
  fi;
  atomic { alive[0] = false; Ended() };
#ifdef MUTANT_ENDS_SILENTLY
  mustNotify = false;
#endif
  Effects();
hangs:
  skip
}

/* Registered, and entered later: EnterThread, then EndThread. */
proctype LateThread() {
  byte j;
  bool mustRing, mustNotify;
  if
  :: atomic { !alive[1] -> /* Begin */
      alive[1] = true;
      j = 0;
      do
      :: j < 2 ->
        if
        :: inProgress[j] ->
#ifndef MUTANT_BEGIN_UNCOUNTED
          joinAlive[j]++
#else
          skip
#endif
        :: else
        fi;
        j++
      :: else -> break
      od;
      j = 0;
      Counted()
    };
    atomic { alive[1] = false; Ended() };
    Effects()
  :: true /* this thread never starts: a join does not wait for it */
  fi
}

/* ------------------------------------------------------------ the stop */

inline StartHooks() {
  /* THE CONTRACT'S: the hooks are alive from the stop on, so the request makes them so under
     the mutex, before any join can have seen the stop. */
  j = 0;
  do
  :: j < 2 -> if :: inProgress[j] -> joinAlive[j] = joinAlive[j] + HOOKS :: else fi; j++
  :: else -> break
  od;
  j = 0;
  hookAlive[0] = true; hookAlive[1] = true
}

bool hooksDue;            /* the JavaScript thread has heard of the stop */

/* Latch, under the mutex; its effects come after it. */
inline Latch(which) {
  record = which; provisional = awaitsAnswer;
  mustNotify = mustNotify || waiters > 0;
  if :: inProgress[0] && joinStop[0] == 0 -> mustRing = true; joinStop[0] = record :: else fi;
  if :: inProgress[1] && joinStop[1] == 0 -> joinStop[1] = record :: else fi;
#if !defined(MUTANT_LATE_HOOKS) && !defined(WITHOUT_HOOKS)
  StartHooks();
#endif
  Counted()
}

proctype Requester() {
  byte j;
  bool mustRing, mustNotify;
  if
  :: atomic { if :: record == 0 -> Latch(1) :: else fi };
     Effects();
     hooksDue = true
  :: true /* no stop is requested */
  fi
}

/* The arbiter: AnswerStop with the winner, or AnswerNone. (A stop that has not come here is
   answered, too: then the answer is the stop.) */
proctype Arbiter() {
  byte j;
  bool mustRing, mustNotify;
  if
  :: atomic { /* AnswerNone */
      mustRing = inProgress[0]; mustNotify = true; /* Settle */
      if :: record != 0 -> provisional = false :: else fi;
      awaitsAnswer = false; answered = true
    }
  :: atomic { /* AnswerStop */
      mustRing = inProgress[0]; mustNotify = true; /* Settle */
      if
      :: record == 0 -> awaitsAnswer = false; Latch(2)
      :: else ->
        record = 2; /* Replace */
        if :: joinStop[0] == 1 -> joinStop[0] = 2 :: else fi;
        if :: joinStop[1] == 1 -> joinStop[1] = 2 :: else fi
      fi;
      awaitsAnswer = false; provisional = false; answered = true
    }
  fi;
#ifdef MUTANT_ANSWERS_SILENTLY
  mustRing = false; mustNotify = false;
#endif
  Effects();
  if :: record != 0 -> hooksDue = true :: else fi
}

/* ClearStop, which the code refuses here: clearable_ is false from AwaitAnswer on. */
proctype Clearer() {
  atomic { record != 0 -> record = 0 }
}

/* THE CONTRACT'S: the JavaScript thread runs its hooks, the last registered first. */
proctype Hooks() {
  byte j, at = HOOKS;
  bool mustRing, mustNotify;
end:
  hooksDue ->
#ifdef MUTANT_LATE_HOOKS
  atomic { StartHooks(); Counted() };
#endif
  do
  :: at > 0 ->
#ifdef MUTANT_HOOKS_FORWARD
    if
    :: mayHang -> break
    :: atomic { hookAlive[HOOKS - at] = false; hookEnded[HOOKS - at] = true; Ended() }
    fi;
#else
    if
    :: mayHang -> break
    :: atomic { hookAlive[at - 1] = false; hookEnded[at - 1] = true; Ended() }
    fi;
#endif
    Effects();
    /* api.md 8.2: "the last registered first" */
    assert(hookEnded[1]);
    at--
  :: else -> break
  od
}

/* ------------------------------------------------------------ the joins */

inline BeginJoin(me) {
  atomic {
    joinAlive[me] = COUNT(me);
    inProgress[me] = true;
    joinStop[me] = record
  }
}

/* FinishJoin. Its result is is_over = false if a provisional record came since the caller
   looked. THE CONTRACT'S: and if something has begun since then, a hook or a late thread.
   (MUTANT_FINISH_UNCHECKED is the code of today: a thread that enters between the look and
   FinishJoin is a straggler of a join without a stop.) */
inline FinishJoin(me) {
  atomic {
    if
#ifndef MUTANT_ENDS_PROVISIONAL
    :: joinStop[me] != 0 && provisional
#endif
#ifndef MUTANT_FINISH_UNCHECKED
    :: (joinStop[me] == 0 || !provisional) && joinAlive[me] != 0 &&
       !(joinStop[me] != 0 && graceOver[me])
#endif
    :: else ->
      /* Invariant 6 (coordinator.cc): while a record is provisional no join ends that has
         seen it. */
      assert(joinStop[me] == 0 || !provisional);
      /* api.md 1.6 and 8.2: it ends when all have ended, threads and hooks, or when its grace
         period is over, which takes a stop. */
      assert(joinAlive[me] == 0 || (joinStop[me] != 0 && graceOver[me]));
      assert(joinStop[me] == 0 || graceOver[me] || HOOKS_ENDED);
      assert(joinAlive[me] != 0 || !alive[0]);
      inProgress[me] = false; isOver[me] = true;
      thrown[me] = record
    fi
  }
}

/* The grace period of a join that has seen the stop runs out, if something hangs. */
proctype Clock() {
end:
  do
  :: atomic { inProgress[0] && joinStop[0] != 0 && !graceOver[0] -> graceOver[0] = true }
  :: atomic { inProgress[1] && joinStop[1] != 0 && !graceOver[1] -> graceOver[1] = true }
  od
}

/* attachment.ts, join(): one event of the event loop after the other calls progress(). */
proctype JavaScriptJoin() {
  byte left;              /* joinRemainingMs: 0, 1 = some, NONE = infinity */
  bool timer;             /* a timer is set: it fires when the grace period is over */
  bool turn = true;       /* setImmediate(progress) */
  BeginJoin(0);
  do
  :: isOver[0] -> break
  :: else ->
end_parked:
    if
    :: atomic { turn -> turn = false }
    :: atomic { rung -> rung = false }
    :: atomic { timer && graceOver[0] -> timer = false }
    fi;
    atomic { /* progress(): JoinRemainingMs */
      if
      :: joinStop[0] != 0 && provisional -> left = NONE
      :: else ->
        if
        :: joinAlive[0] == 0 -> left = 0
        :: else ->
          if
          :: joinStop[0] == 0 -> left = NONE
          :: else -> left = (graceOver[0] -> 0 : 1)
          fi
        fi
      fi;
      timer = (left == 1)
    };
    if
    :: left == 0 -> FinishJoin(0)
    :: else
    fi;
    left = 0
  od
}

/* coordinator_threads.cc, BlockingJoin: AwaitJoin and FinishJoin until it is over. */
proctype BlockingJoin() {
  BeginJoin(1);
  do
  :: isOver[1] -> break
  :: else ->
    atomic { waiters++ };
    do /* until all have ended or a stop is there */
    :: atomic { joinAlive[1] == 0 || joinStop[1] != 0 -> waiters--; break }
    :: atomic { joinAlive[1] != 0 && joinStop[1] == 0 -> asleep = true };
end_waiting:
      !asleep
    od;
    if
    :: joinStop[1] != 0 ->
      do /* until all have ended or the grace period is over */
      :: joinAlive[1] == 0 || graceOver[1] -> break
      :: atomic { joinAlive[1] != 0 && !graceOver[1] -> asleep = true };
        if :: !asleep :: graceOver[1] -> asleep = false fi
      od;
      do /* until the arbiter has answered */
      :: !provisional -> break
      :: atomic { provisional -> asleep = true };
end_answer:
        !asleep
      od
    :: else
    fi;
    FinishJoin(1)
  od
}

init {
  atomic {
    alive[0] = true;
    if :: awaitsAnswer = true; run Arbiter() :: true fi;
    if :: mayHang = true :: true fi;
    run Thread(); run Requester(); run Clock();
#ifdef MUTANT_CLEARS
    run Clearer();
#endif
#ifndef WITHOUT_HOOKS
    run Hooks();
#endif
#ifndef WITHOUT_LATE_THREAD
    run LateThread();
#endif
#ifndef WITHOUT_SCRIPT
    run JavaScriptJoin();
#endif
#ifndef WITHOUT_NATIVE
    run BlockingJoin()
#endif
  }
}

/* api.md 1.6 and 8.2: with a stop that is answered, a join ends, whatever hangs (its grace
   period ends it), and without a stop when all threads have ended. */
#define ARBITRATED (record != 0 && !provisional)
ltl scriptEnds { (<> [] ARBITRATED) -> <> isOver[0] }
ltl nativeEnds { (<> [] ARBITRATED) -> <> isOver[1] }
/* Once the arbiter has answered, also for a stop that was cleared meanwhile. */
ltl nativeAnswered { (<> [] (answered && joinStop[1] != 0)) -> <> isOver[1] }
ltl scriptUnstopped {
  (<> [] (inProgress[0] -> joinAlive[0] == 0)) -> <> (isOver[0] || record != 0)
}
ltl nativeUnstopped {
  (<> [] (inProgress[1] -> joinAlive[1] == 0)) -> <> (isOver[1] || record != 0)
}

/* Invariant 6: "what a join has thrown stands". */
ltl thrownStands {
  [] ((isOver[0] && thrown[0] != 0 -> record == thrown[0]) &&
      (isOver[1] && thrown[1] != 0 -> record == thrown[1]))
}
