/* The queue of calls, and `schedule`, `join` and `done` over it.

   Modelled: CallQueue (lib/pool/queue/call-queue.ts) and CallGroup
   (lib/cluster/calls/call-group.ts) step by step, as CallRules (call-rules.ts) uses them: two
   users that schedule, run, join and ask done; workers, which take calls, and end, fail or lose
   them; what releases calls that are held or delayed; one deadline, which settles a call
   wherever it is; and the end of the cluster.
   JavaScript is one thread: each function of the queue is one atomic step, in which the serving of those that wait
   (`#serve` of the group, then of the queue) comes last.
   Abstracted: placement, priorities, suspects and bytes; the arrays of `Line`, whose items here leave
   at once; errors of `enter`; cancelling others in flight (it makes them end or fail sooner). Bound:
   CALLS, what each user asks (ASKS), one attempt after the first; MAX_QUEUED calls find room.

   verify: safety -DCALLS=2
   verify: safety -DWITHOUT_END
   verify: safety -DWITHOUT_DEADLINE
   verify: served0 fair -DCALLS=2 -DWITHOUT_DELAY
   verify: served1 fair -DCALLS=2 -DWITHOUT_END -DWITHOUT_DEADLINE
   verify: allSettle fair -DCALLS=2 -DWITHOUT_END
   verify: failure fair -DCALLS=2 -DWITHOUT_END -DWITHOUT_DEADLINE
   mutant: NO_DROP safety -DWITHOUT_END -DWITHOUT_DEADLINE
   mutant: NO_WITHDRAW safety -DWITHOUT_END -DWITHOUT_DEADLINE
   mutant: EARLY_REJECT safety -DWITHOUT_END -DWITHOUT_DEADLINE
   mutant: REJECT_ALL safety -DWITHOUT_END -DWITHOUT_DEADLINE
   mutant: NO_BARRIER safety -DWITHOUT_END -DWITHOUT_DEADLINE
   mutant: JOINS_GROUP safety -DWITHOUT_END -DWITHOUT_DEADLINE
   mutant: ALWAYS_AGAIN safety -DWITHOUT_END -DWITHOUT_DEADLINE
   mutant: NO_SERVE served1 fair -DCALLS=2 -DWITHOUT_END -DWITHOUT_DEADLINE */

#ifndef CALLS
#define CALLS 3
#endif
#define ASKS 2
#define MAX_QUEUED 1
#define NONE 255

mtype:place = { fresh, waiting, held, queued, inFlight, delayed, out };
mtype:kind = { put, join, done };

/* Of each call: its life (call-queue.ts). */
mtype:place place[CALLS] = fresh;
bool decided[CALLS];   /* it has settled in flight */
bool again[CALLS];     /* it was run before: the next time is the last */
bool inGroup[CALLS];      /* it was made by `schedule` */
byte number[CALLS];
byte made;                /* calls that users have made so far */

/* CallQueue. */
byte items[CALLS];     /* #items, in order */
byte nQueued;             /* #counts.queued */
byte nInFlight;
byte room[CALLS];      /* #room, in order */
byte nRoom;
byte last;                /* #last */
bool ended;               /* #end is set: nothing is put in */
bool closed;              /* #end.dropped is set, too */

/* CallGroup. */
byte line[2];             /* #line: a user each, as a user awaits what it asks */
byte nLine;
mtype:kind kindOf[2];     /* what the user awaits */
byte callOf[2];        /* ... the call of a put */
byte after[2];            /* ... the `after` of a join */
bool pending[2];          /* its promise is pending */
bool error;               /* #failure is set */

/* Read by the properties only. */
byte owed[2];             /* the calls, a bit each, that were put in before this join */
bool isBarred[CALLS];  /* it was put while a join waited before it */
byte unreported;          /* failures of the group that no user has received yet */

#define LAST (CALLS - 1)
#define BIT(c) (1 << (c))
#define IS_IN(c) (place[c] != fresh && place[c] != out)
#define IS_OFF(c) (place[c] == held || place[c] == delayed)
#define IS_LIVE(c) (inGroup[c] && IS_IN(c)) /* #live of the group */

/* ------------------------------------------------------------ call-queue.ts */

#define REMOVE(list, length, c) \
  i = 0; \
  do \
  :: i < length && list[i] != c -> i++ \
  :: else -> break \
  od; \
  assert(i < length); \
  length--; \
  do \
  :: i < length -> list[i] = list[i + 1]; i++ \
  :: else -> list[length] = 0; break \
  od; \
  i = 0

/* #queue; to the head, as putBack() does: Unshift. */
inline Queue(c) { place[c] = queued; items[nQueued] = c; nQueued++ }

inline Unshift(c) {
  i = nQueued;
  do
  :: i > 0 -> items[i] = items[i - 1]; i--
  :: else -> break
  od;
  items[0] = c; nQueued++; place[c] = queued
}

/* #enter: a call that waits for its arguments is held, outside the line. */
inline Enter(c) {
  /* Invariant 3 of call-group.ts: a put after a join waits until the join is over. */
  assert(!isBarred[c]);
  if
  :: Queue(c)
#ifndef WITHOUT_DELAY
  :: place[c] = held
#endif
  fi
}

/* put(), of a call that is not refused. */
inline Put(c) {
  assert(!ended); last++; number[c] = last;
  if
  :: nRoom == 0 && nQueued < MAX_QUEUED -> Enter(c)
  :: else -> place[c] = waiting; room[nRoom] = c; nRoom++
  fi
}

/* out(), without telling. */
inline Out(c) {
  if
  :: place[c] == queued -> REMOVE(items, nQueued, c)
  :: place[c] == waiting -> REMOVE(room, nRoom, c)
  :: place[c] == inFlight -> nInFlight--
  :: else
  fi;
  place[c] = out; number[c] = 0; decided[c] = false; again[c] = false;
  Left(c)
}

/* ------------------------------------------------------------ call-group.ts */

/* left: a call that is out before it was in rejects its put. */
inline Left(c) {
  if
  :: nLine > 0 && kindOf[line[0]] == put && callOf[line[0]] == c -> u = line[0]; Leave(u)
  :: nLine > 1 && kindOf[line[1]] == put && callOf[line[1]] == c -> u = line[1]; Leave(u)
  :: else
  fi;
  u = 0
}

/* #leave, #shift: what the user awaits settles. */
inline Leave(v) {
  if
  :: line[0] == v -> line[0] = line[1]
  :: else
  fi;
  line[1] = 0; nLine--;
  if
  :: kindOf[v] == join -> /* calls that were put after it may enter */
    i = 0;
    do
    :: i < CALLS -> isBarred[i] = false; i++
    :: else -> break
    od;
    i = 0
  :: kindOf[v] == put -> isBarred[callOf[v]] = false
  :: else
  fi;
  pending[v] = false; kindOf[v] = 0; callOf[v] = 0; after[v] = 0; owed[v] = 0
}

inline Wait(me, kind, c) {
  kindOf[me] = kind; callOf[me] = c; pending[me] = true;
  line[nLine] = me; nLine++
}

/* u: the first of the line; n: the calls of the group that are in the queue; m: those that its
   join waits for; d: all that are in. */
inline Look() {
  u = line[0]; i = 0; n = 0; m = 0; d = 0;
  do
  :: i < CALLS ->
    if
    :: IS_IN(i) -> d++
    :: else
    fi;
    if
    :: IS_LIVE(i) -> n++
    :: else
    fi;
    if
#ifndef MUTANT_JOINS_GROUP
    :: IS_IN(i) && !IS_LIVE(i) && number[i] <= after[u] -> m++
#endif
    :: IS_LIVE(i) -> m++
    :: else
    fi;
    i++
  :: else -> break
  od;
  i = 0
}

/* #serve of the group, as far as it goes; then that of the queue, which lets in what waits for
   room, and each that is let in serves the group. */
inline Serve() {
  do
  :: Look();
    if
#ifdef MUTANT_EARLY_REJECT
    :: nLine > 0 && error ->
#else
    :: nLine > 0 && error && n == 0 ->
#endif
      /* Invariant 2: a failure rejects one user, once no call of the group is in flight. */
      assert(n == 0 && unreported == 1);
      unreported--;
#ifndef MUTANT_REJECT_ALL
      error = false;
#endif
      if
      :: kindOf[u] == put -> c = callOf[u]; Leave(u); place[c] = out; c = 0
      :: else -> Leave(u)
      fi
    :: nLine > 0 && !error && kindOf[u] == put && place[callOf[u]] == fresh ->
      c = callOf[u];
      if
      :: ended -> place[c] = out; Leave(u) /* refused */
      :: else ->
        Put(c);
        if
        :: place[c] != waiting -> Leave(u)
        :: else
        fi
      fi;
      c = 0
    :: nLine > 0 && !error && kindOf[u] != put && closed && d == 0 -> Leave(u)
    :: nLine > 0 && !error && !closed && (kindOf[u] == done || (kindOf[u] == join && m == 0)) ->
      do /* Invariant 4. */
      :: i < CALLS -> assert((owed[u] & BIT(i)) == 0 || place[i] == out); i++
      :: else -> break
      od;
      i = 0;
      Leave(u)
    :: else ->
      if
      :: nRoom > 0 && nQueued < MAX_QUEUED && !closed ->
        c = room[0]; REMOVE(room, nRoom, c); Enter(c);
        if
        :: inGroup[c] -> assert(nLine > 0 && callOf[u] == c && kindOf[u] == put); Leave(u)
        :: else
        fi;
        c = 0
      :: else -> break
      fi
    fi
  od;
  u = 0; d = 0;
  Consistent()
}

/* failed: the group's calls that have not begun are out; the first of its line waits for room no
   more. `f` itself is in flight, and out next. */
inline Failed(f) {
  if
  :: inGroup[f] && !error && !closed ->
    error = true; unreported++;
#ifndef MUTANT_NO_WITHDRAW
    if
    :: nLine > 0 && kindOf[line[0]] == put && place[callOf[line[0]]] == waiting ->
      d = callOf[line[0]]; REMOVE(room, nRoom, d); place[d] = fresh; number[d] = 0
    :: else
    fi;
#endif
#ifndef MUTANT_NO_DROP
    d = 0;
    do
    :: d < CALLS ->
      if
      :: IS_LIVE(d) && place[d] != inFlight -> assert(place[d] != waiting); Out(d)
      :: else
      fi;
      d++
    :: else -> break
    od;
#endif
    d = 0
  :: else
  fi
}

inline Consistent() {
  i = 0; n = 0; m = 0;
  do
  :: i < CALLS ->
    if
    :: place[i] == queued -> n++
    :: place[i] == inFlight -> m++
    :: else
    fi;
    /* Invariant 1 of call-group.ts. */
    assert(!error || !IS_LIVE(i) || place[i] == inFlight);
    /* Invariant 7 of call-queue.ts. */
    assert(!closed || !IS_IN(i) || place[i] == inFlight);
    i++
  :: else -> break
  od;
  assert(n == nQueued && m == nInFlight); /* invariant 1 of call-queue.ts */
  /* Invariants 2 and 3: what waits for room finds none. */
  assert(nRoom == 0 || nQueued >= MAX_QUEUED);
  assert(unreported == 0 || error);
  i = 0; n = 0; m = 0
}

/* ------------------------------------------------------------ the callers */

/* A process each: two users; two workers; what releases calls; a deadline; the end. They share
   their text, so that `Serve` is in it once. */
#define IS_USER (_pid < 2)
#define IS_WORKER (_pid == 2 || _pid == 3)
#define IS_RELEASE (_pid == 4)
#define IS_DEADLINE (_pid == 5)
#define IS_END (_pid == 6)

active [7] proctype Caller() {
  byte left = (IS_USER -> ASKS : 2);
  byte w = NONE; /* the call of the worker */
  byte c, d, u, i, n, m;
end:
  do
  :: atomic {
      if
      :: IS_USER && left > 0 && !pending[_pid] ->
        left--;
        if
        :: made < CALLS -> /* schedule */
          d = made; made++; inGroup[d] = true;
          isBarred[d] = nLine > 0 && kindOf[line[0]] == join;
          if
          :: ended && (!closed || (nLine == 0 && !error)) -> place[d] = out /* refused */
#ifdef MUTANT_NO_BARRIER
          :: !ended && !error && nRoom == 0 && nQueued < MAX_QUEUED -> Put(d)
#endif
          :: else -> Wait(_pid, put, d) /* without a line, Serve puts it in */
          fi
        :: made < CALLS -> /* run: not of the group, and the user goes on */
          d = made; made++;
          if
          :: ended -> place[d] = out
          :: else -> Put(d)
          fi
        :: true ->
          Wait(_pid, join, 0); after[_pid] = last;
          do
          :: i < made ->
            if
            :: IS_IN(i) || inGroup[i] -> owed[_pid] = owed[_pid] | BIT(i)
            :: else
            fi;
            i++
          :: else -> break
          od
        :: error || closed -> Wait(_pid, done, 0) /* else it is answered at once */
        fi

      /* A worker: take(), and then its function ends, fails, or is lost with its worker. */
      :: IS_WORKER && w == NONE && nQueued > 0 ->
        w = items[0]; REMOVE(items, nQueued, w);
        assert(!closed && !(error && inGroup[w]));
        place[w] = inFlight; nInFlight++
      :: IS_WORKER && w != NONE ->
        if
        :: true -> Out(w) /* it ended well, or was cancelled */
        :: !decided[w] -> Failed(w); Out(w) /* with an error of its own */
        :: !decided[w] && !again[w] -> /* with one after which it is run again, or lost */
#ifndef MUTANT_ALWAYS_AGAIN
          if
          :: closed || (error && inGroup[w]) -> Out(w) /* #whyOver */
          :: else ->
#else
          if
          :: true ->
#endif
            again[w] = true; nInFlight--;
            if
            :: Unshift(w) /* putBack() */
#ifndef WITHOUT_DELAY
            :: place[w] = delayed
#endif
            fi
          fi
        fi;
        w = NONE

      /* The arguments of a held call are there, or the time of a delayed one is over. */
      :: IS_RELEASE && IS_OFF(0) -> Queue(0)
      :: IS_RELEASE && !IS_OFF(0) && IS_OFF(1) -> Queue(1)
      :: IS_RELEASE && !IS_OFF(0) && !IS_OFF(1) && IS_OFF(LAST) -> Queue(LAST)

#ifndef WITHOUT_DEADLINE
      /* A deadline, or the caller's signal: decide() of one call, wherever it is; or never. */
      :: IS_DEADLINE && left > 0 && made > 0 ->
        left = 0;
        do
        :: d + 1 < made -> d++
        :: break
        od;
        if
        :: place[d] == inFlight -> decided[d] = true
        :: place[d] != inFlight && place[d] != out -> Out(d)
        :: true
        fi
#endif
#ifndef WITHOUT_END
      /* The cluster ends, at once or after what was put in: close(); or never. */
      :: IS_END && left > 0 ->
        left--;
        if
        :: left == 1 -> ended = true
        :: left == 0 ->
          ended = true; closed = true;
          do
          :: d < CALLS ->
            if
            :: IS_IN(d) && place[d] != inFlight -> Out(d)
            :: else
            fi;
            d++
          :: else -> break
          od
        :: left = 0
        fi
#endif
      fi;
      d = 0; i = 0;
#ifdef MUTANT_NO_SERVE
      if
      :: IS_WORKER
      :: else -> Serve()
      fi
#else
      Serve()
#endif
    }
  :: IS_USER && left == 0 && !pending[_pid] -> break
  od
}

/* Safety: Consistent and the asserts at Enter, Put, Serve and take. */

/* Invariants 2 and 3 of call-group.ts: all that a user asks ends. (Weak fairness: a worker ends or
   loses the call that it has taken; without workers a join would never end.) */
ltl served0 { [] (pending[0] -> <> !pending[0]) }
ltl served1 { [] (pending[1] -> <> !pending[1]) }

/* Every call that was made is out in the end. */
ltl allSettle { <> [] ((made < 1 || place[0] == out) && (made < CALLS || place[LAST] == out)) }

/* Invariant 2: a failure rejects a user, if one waits, as soon as nothing of the group is in
   flight; it is not forgotten, and rejects no second one (the assert in Serve). */
ltl failure { [] ((error && nLine > 0) -> <> (!error || nLine == 0)) }
