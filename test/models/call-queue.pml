/* The call queue, with its error barrier.

   Modelled: CallQueue (lib/pool/queue/call-queue.ts) step by step, as its callers
   use it through CallRules (call-rules.ts): two users that put calls, join and ask done;
   workers, which take calls, and end, fail or lose them; one deadline, which takes a
   call out of the queue or decides it in flight; and the close of the cluster.
   JavaScript is one thread, and nothing in the queue calls out to anything that calls back
   (onWork only schedules a microtask): each call is one atomic step.
   Abstracted: calls tagged for one worker; the error is one bit, as only the first is kept;
   the two arrays of `Line` are one; cancelling others in flight (it makes them end or fail
   sooner). Bound: CALLS, CALLS of each user, RETRIES; MAX_QUEUED calls are queued
   at most, and those that are put back.

   verify: safety -DCALLS=2
   verify: safety -DWITHOUT_CLOSE
   verify: safety -DWITHOUT_DEADLINE
   verify: safety -DWITHOUT_CLOSE -DWITHOUT_DEADLINE -DCALLS=3
   verify: served0 fair -DCALLS=2
   verify: served1 fair -DWITHOUT_CLOSE -DWITHOUT_DEADLINE
   verify: allSettle fair -DWITHOUT_CLOSE -DWITHOUT_DEADLINE
   verify: failure fair -DWITHOUT_CLOSE -DWITHOUT_DEADLINE
   mutant: NO_DROP safety -DWITHOUT_CLOSE -DWITHOUT_DEADLINE
   mutant: EARLY_REJECT safety -DWITHOUT_CLOSE -DWITHOUT_DEADLINE
   mutant: REJECT_ALL safety -DWITHOUT_CLOSE -DWITHOUT_DEADLINE
   mutant: NO_BARRIER safety -DWITHOUT_CLOSE -DWITHOUT_DEADLINE
   mutant: SILENT_PUT_BACK safety -DWITHOUT_CLOSE -DWITHOUT_DEADLINE
   mutant: NO_ADVANCE served0 fair -DWITHOUT_CLOSE -DWITHOUT_DEADLINE */

#ifndef CALLS
#define CALLS 3
#endif
#ifndef CALLS
#define CALLS 2
#endif
#define RETRIES 1
#define MAX_QUEUED 1
#define NONE 255

mtype:place = { fresh, waits, queued, inFlight, out };
mtype:kind = { put, join, done };

/* Of each call. */
mtype:place place[CALLS] = fresh;
byte attempts[CALLS];
bool settled[CALLS];   /* Call.settle: its value resolves or rejects, or its put rejects */
bool decided[CALLS];
byte made;                /* calls that users have put so far */

/* CallQueue. */
byte line[CALLS];      /* #line, in order */
byte lineLength;
byte nQueued;             /* #queued */
byte nLeft;               /* #left: in #line, but out */
byte nInFlight;           /* #inFlight */
bool error;               /* #error is set */
bool closed;              /* #closed is set */

/* #waiters: a user each, as a user awaits each of its calls. */
byte waiter[2];
byte waiterCount;
mtype:kind kindOf[2];     /* the call that the user awaits */
byte callOf[2];        /* ... and the call of a put */
bool pending[2];          /* its promise is pending */

/* Read by the properties only. */
byte unreported;              /* failures that were noted and have rejected no waiter yet */
bool isBarred[CALLS];  /* it was put while a join waited before it */
byte putBacks;            /* calls that are queued because they were put back */

/* ------------------------------------------------------------ call-queue.ts */

inline Settle(c) { settled[c] = true }

/* drop(): a call that leaves the queue untaken is settled with the cause (invariant 1). */
inline Drop(c) { assert(!settled[c] && place[c] == out); Settle(c) }

inline Push(c) { line[lineLength] = c; lineLength++ }

inline Unshift(c) {
  i = lineLength;
  do
  :: i > 0 -> line[i] = line[i - 1]; i--
  :: else -> break
  od;
  line[0] = c; lineLength++; i = 0
}

inline Shift(c) {
  c = line[0]; lineLength--;
  i = 0;
  do
  :: i < lineLength -> line[i] = line[i + 1]; i++
  :: else -> line[lineLength] = 0; break
  od;
  i = 0
}

/* #dropAll: every queued call is out, and dropped. */
inline DropAll() {
  do
  :: lineLength > 0 ->
    Shift(d);
    if :: place[d] == queued -> place[d] = out; Drop(d) :: else fi
  :: else -> break
  od;
  nQueued = 0; nLeft = 0; putBacks = 0; d = 0
}

/* #note: the first failure; later ones count only after the first has rejected a waiter. */
inline Note() {
  if
  :: !error && !closed ->
    error = true; unreported++;
#ifndef MUTANT_NO_DROP
    DropAll()
#endif
  :: else
  fi
}

/* #leave: the call stays in #line, where take() skips it. */
inline Leave(c) {
  place[c] = out; nQueued--; nLeft++;
  if
  :: nLeft > nQueued -> /* #line.keep */
    i = 0; d = 0;
    do
    :: i < lineLength ->
      if :: place[line[i]] == queued -> line[d] = line[i]; d++ :: else fi;
      i++
    :: else -> break
    od;
    do :: lineLength > d -> lineLength--; line[lineLength] = 0 :: else -> break od;
    i = 0; d = 0; nLeft = 0
  :: else
  fi
}

inline Enter(c) {
  /* Invariant 4: a call that is put after a join waits until the join is over. */
  assert(!isBarred[c]);
  place[c] = queued; nQueued++;
  /* Invariant 5: only calls that are put back exceed maxQueued. */
  assert(nQueued <= MAX_QUEUED + putBacks);
  Push(c)
}

inline ShiftWaiter() {
  u = waiter[0]; pending[u] = false; waiter[0] = waiter[1]; waiter[1] = 0; waiterCount--;
  if
  :: kindOf[u] == join -> /* calls that were put after it may enter */
    i = 0;
    do
    :: i < CALLS -> isBarred[i] = false; i++
    :: else -> break
    od;
    i = 0
  :: else
  fi
}

inline Forget(me) { kindOf[me] = 0; callOf[me] = 0 }

/* #advance: serves the waiters in order, as far as the state allows. */
inline Advance() {
  do
  :: waiterCount == 0 -> break
  :: waiterCount > 0 && (error || closed) ->
    u = waiter[0];
    if
#ifdef MUTANT_EARLY_REJECT
    :: true ->
#else
    :: nInFlight == 0 || (!error && kindOf[u] == put) ->
#endif
      ShiftWaiter();
      if
      :: error ->
        /* Invariant 3: a failure rejects one waiter, once nothing is in flight. */
        assert(nInFlight == 0 && unreported == 1);
#ifndef MUTANT_REJECT_ALL
        error = false;
#endif
        unreported--
      :: else
      fi;
      if
      :: kindOf[u] == put ->
        assert(!settled[callOf[u]]);
        place[callOf[u]] = out; Settle(callOf[u])
      :: else
      fi;
      Forget(u)
    :: else -> break
    fi
  :: waiterCount > 0 && !error && !closed ->
    u = waiter[0];
    if
    :: kindOf[u] == put ->
      if
      :: nQueued < MAX_QUEUED -> ShiftWaiter(); Enter(callOf[u]); Forget(u)
      :: else -> break
      fi
    :: kindOf[u] == done -> ShiftWaiter(); Forget(u)
    :: else ->
      if
      :: nQueued == 0 && nInFlight == 0 -> ShiftWaiter(); Forget(u)
      :: else -> break
      fi
    fi
  od;
  u = 0
}

inline Wait(me, kind, c) {
  kindOf[me] = kind; callOf[me] = c; pending[me] = true;
  waiter[waiterCount] = me; waiterCount++;
  Advance()
}

/* The counters agree with the places (invariant 1), and nothing is queued while a failure has
   rejected no waiter yet, or when the queue is closed (invariant 2). */
inline Consistent() {
  i = 0; n = 0; m = 0;
  do
  :: i < CALLS ->
    if :: place[i] == queued -> n++ :: place[i] == inFlight -> m++ :: else fi;
    assert(place[i] != out || settled[i]); /* a call that is out is settled */
    i++
  :: else -> break
  od;
  assert(n == nQueued && m == nInFlight && lineLength == nQueued + nLeft);
  assert(!(error || closed) || nQueued == 0);
  assert(unreported == 0 || error);
  i = 0; n = 0; m = 0
}

/* ------------------------------------------------------------ the callers */

active [2] proctype User() {
  byte left = CALLS;
  byte c, d, u, i, n, m;
end:
  do
  :: left > 0 && !pending[_pid] -> atomic {
      left--;
      if
      :: made < CALLS -> /* put */
        c = made; made++;
        if
        :: !error && !closed && (waiterCount == 0
#ifdef MUTANT_NO_BARRIER
           || kindOf[waiter[0]] == join
#endif
           ) && nQueued < MAX_QUEUED ->
          isBarred[c] = waiterCount > 0 && kindOf[waiter[0]] == join;
          Enter(c)
        :: else ->
          place[c] = waits;
          isBarred[c] = waiterCount > 0 && kindOf[waiter[0]] == join;
          Wait(_pid, put, c)
        fi
      :: true -> Wait(_pid, join, NONE)
      :: true -> /* done */
        if
        :: !error && !closed -> skip
        :: else -> Wait(_pid, done, NONE)
        fi
      fi;
      c = 0;
      Consistent()
    }
  :: left == 0 && !pending[_pid] -> break
  od
}

/* Two workers: each takes, and then its function ends, fails, or is lost with its worker. */
active [2] proctype Worker() {
  byte c = NONE;
  byte d, u, i, n, m;
end:
  do
  :: c == NONE && nQueued > 0 -> atomic { /* take() */
      if
      :: error || closed || lineLength == 0 -> skip
      :: else ->
        do
        :: lineLength > 0 ->
          Shift(c);
          if
          :: place[c] == queued -> break
          :: else -> nLeft--; c = NONE
          fi
        :: else -> break
        od;
        if
        :: c != NONE ->
          assert(!error && !closed && !settled[c]); /* invariant 2 */
          place[c] = inFlight; nQueued--; nInFlight++;
          if :: putBacks > 0 -> putBacks-- :: else fi;
          Advance()
        :: else
        fi
      fi;
      Consistent()
    }
  :: c != NONE -> atomic {
      if
      :: true -> /* ended(), well: end() */
        Settle(c); place[c] = out; nInFlight--; Advance()
      :: true -> /* ended() with an error */
        if
        :: decided[c] || closed -> Settle(c); place[c] = out; nInFlight--; Advance()
        :: else -> Settle(c); place[c] = out; nInFlight--; Note(); Advance()
        fi
      :: true -> /* returned(): its worker is lost */
        attempts[c]++;
        if
        :: decided[c] -> place[c] = out; nInFlight--; Advance()
        :: !decided[c] && attempts[c] > RETRIES ->
          Settle(c); place[c] = out; nInFlight--; Note(); Advance()
        :: else -> /* putBack() */
          nInFlight--;
          if
          :: !closed && !error ->
            place[c] = queued; nQueued++; putBacks++; Unshift(c)
          :: else -> place[c] = out;
#ifndef MUTANT_SILENT_PUT_BACK
            Drop(c)
#endif
          fi;
#ifndef MUTANT_NO_ADVANCE
          Advance()
#endif
        fi
      fi;
      c = NONE;
      Consistent()
    }
  od
}

/* A deadline, or the caller's signal: decide() of one call, wherever it is. */
active proctype Deadline() {
  byte c, d, u, i, n, m;
#ifndef WITHOUT_DEADLINE
  if
  :: made > 0 -> atomic {
      c = 0;
      do
      :: c + 1 < made -> c++
      :: break
      od;
      if
      :: settled[c] || place[c] == out -> skip /* its timer is off */
      :: else ->
        if
        :: place[c] == inFlight ->
          decided[c] = true; Settle(c);
          if :: Note() :: true fi /* failed: report(); cancelled: nothing */
        :: place[c] == queued ->
          Settle(c);
          if :: putBacks > 0 && attempts[c] > 0 -> putBacks-- :: else fi;
          Leave(c);
          if :: Note() :: true fi; /* failed: failQueued(); cancelled: remove() */
          Advance()
        :: else -> /* waiting: remove() rejects its call */
          assert(place[c] == waits);
          place[c] = out; Settle(c);
          if
          :: callOf[waiter[0]] == c -> u = waiter[0]; waiter[0] = waiter[1]
          :: else -> u = waiter[1]
          fi;
          waiter[1] = 0; waiterCount--; pending[u] = false; isBarred[c] = false; Forget(u);
          Advance()
        fi
      fi;
      Consistent()
    }
  :: true
  fi
#endif
}

/* The cluster is closed, or stopped: #stopAll. */
active proctype Close() {
  byte d, u, i, n, m;
#ifndef WITHOUT_CLOSE
  if
  :: atomic { true -> closed = true; DropAll(); Advance(); Consistent() }
  :: true
  fi
#endif
}

/* Safety: Consistent and the asserts at Drop, Enter, Advance and take; each names the
   invariant of call-queue.ts. */

/* Invariants 3 and 4: every call of a user ends. (Weak fairness: a worker ends or loses the
   call that it has taken; without workers a join would never end.) */
ltl served0 { [] (pending[0] -> <> !pending[0]) }
ltl served1 { [] (pending[1] -> <> !pending[1]) }

/* Invariant 1: every call that was put is settled. */
#define LAST (CALLS - 1)
#define ALL_SETTLED (place[0] == fresh || settled[0]) && (place[1] == fresh || settled[1]) && \
                 (place[LAST] == fresh || settled[LAST])
ltl allSettle { <> [] (ALL_SETTLED) }

/* Invariant 3: a failure rejects a waiter, if there is one, as soon as nothing is in flight;
   it is not forgotten, and rejects no second one (the assert in Advance). */
ltl failure { [] ((error && waiterCount > 0) -> <> (!error || waiterCount == 0)) }
