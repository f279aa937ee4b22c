/**
 * The judges of a history: each says what must never happen, whatever the plan. A judge gives the
 * violations that it finds, as texts.
 */

/** After a fault the cluster may take so long until all is as it was. */
const RECOVERY_MS = 15_000;
/** What a call of the program waits at most while nothing is wrong, besides its function's time. */
const RETRIES = 3;
/** The whole time without servers after which a cluster may fail. */
const AWAY_MS = 45_000;

/** Faults, and what else may cost a call an attempt or time. */
const FAULTS = ['crash', 'freeze', 'cut', 'slow', 'serverCrash', 'secret', 'leave', 'full'];

/** A client finds a server again, whose address it was given, within this time. */
const RECONNECT_MS = 8_000;
/** The doctor may take so long to notice. */
const NOTICE_MS = 6_000;

/** How much a coordinator or node sends at most before the other end has said what has come. */
const WINDOW_BYTES = 1024 * 1024;
/** Besides: acknowledgements, pings, looks at keys, reports. */
const OTHER_BYTES = 128 * 1024;
/** How many calls a node has at most, running and in advance. */
const CALLS_OF_A_NODE = 64;
/** Of each bucket of checkpoints, if the program says nothing else. */
const KEPT_CHECKPOINTS = 5;

/** A function knows by then that its worker leaves. */
const HEARD_MS = 1_000;

/** The key that says which run has the cluster. */
const RUN_KEY = /^\$KV\.allstop_[^.]+\.run$/;

const by = (history, what) => history.filter((event) => event.what === what);

/** When something was wrong: [from, to], with the time of recovery, joined where they overlap. */
function troubles(history, plan) {
  const own = plan.steps
    .filter(({ kind }) => FAULTS.includes(kind))
    .map(({ at, ms = 0 }) => [at, at + ms + RECOVERY_MS]);
  const deaths = by(history, 'dies').map(({ at }) => [at, at + RECOVERY_MS]);
  const joined = [];
  for (const [from, to] of [...own, ...deaths].toSorted(([one], [other]) => one - other)) {
    const last = joined.at(-1);
    if (last !== undefined && from <= last[1]) last[1] = Math.max(last[1], to);
    else joined.push([from, to]);
  }
  return joined;
}

/** The name of the process that an event belongs to. */
const processOf = (place) => place.split('/')[0];

/** Whether another program may have taken the cluster from the one that tells of an `event`. */
function mayLose(history, plan, { place, at }) {
  const own = processOf(place).split('~')[0];
  const programs = plan.steps.filter(({ kind }) => kind === 'program');
  if (programs.some(({ name, onHeld }) => name === own && onHeld === 'refuse')) return true;
  const others = programs.filter(({ name }) => name !== own);
  if (others.some(({ onHeld = 'takeOver' }) => onHeld === 'takeOver')) return true;
  // One that does not answer holds nothing.
  const isParted = troubles(history, plan).some(([from, to]) => from <= at && to >= at);
  return others.length > 0 && isParted;
}

/** By id: a call with all that is told of it. */
function callsOf(history) {
  const calls = new Map();
  for (const event of by(history, 'calls')) {
    calls.set(event.id, { ...event, settled: [], begun: [] });
  }
  for (const event of by(history, 'settles')) calls.get(event.id)?.settled.push(event);
  for (const event of by(history, 'begins')) calls.get(event.id)?.begun.push(event);
  return calls;
}

/** When nodes served: [from, to] for each session. `isMeant`: of which nodes. */
function servingOf(history, isMeant = () => true) {
  const open = new Map();
  const found = [];
  const end = (name, at) => {
    if (open.has(name)) found.push([open.get(name), at]);
    open.delete(name);
  };
  for (const { what, place, name, at } of history) {
    if (what === 'serving' && isMeant(processOf(place))) open.set(place, at);
    else if (what === 'session-over') end(place, at);
    else if (what === 'dies' || what === 'exits') end(name, at);
  }
  for (const since of open.values()) found.push([since, Number.POSITIVE_INFINITY]);
  return found;
}

/** How often the plan, and not a function, may have cost a call an attempt. */
function lossesOf(history, plan) {
  const deaths = by(history, 'dies').filter(({ why }) => why !== 'a function').length;
  const cuts = plan.steps.filter(({ kind }) => FAULTS.includes(kind) && kind !== 'crash').length;
  return deaths + cuts;
}

/** By the name of a node, in all its lives: how much it has of the resource. */
const amountOf = (plan, name) =>
  plan.steps.find((step) => step.name === name.split('~')[0])?.resources?.gpu ?? 0;

/** Whether a program was stopped before an event of it. */
const wasStopped = (history, at) => by(history, 'stops').some((stop) => stop.at <= at);

/** Programs that do not meet in one key. */
const areApart = ({ steps }) => {
  const programs = steps.filter(({ kind }) => kind === 'program');
  return new Set(programs.map(({ domain }) => domain)).size > 1;
};

export const judges = {
  /** Every call settles once, unless its program has died. */
  settlesOnce(history) {
    const exited = new Set(by(history, 'exits').map(({ name }) => name));
    return [...callsOf(history).values()].flatMap(({ id, place, settled }) => {
      if (settled.length > 1) return [`${id} settled ${settled.length} times`];
      const isLeft = settled.length === 0 && exited.has(processOf(place));
      return isLeft ? [`${id} never settled, and its program has ended`] : [];
    });
  },

  /** A result is that of its call. */
  isRight(history) {
    return [...callsOf(history).values()].flatMap(({ id, is, settled }) =>
      settled
        .filter(({ how, value }) => how === 'ok' && value !== is)
        .map(({ value }) => `${id} gave ${value}, not ${is}`),
    );
  },

  /** The items of a map come out once each, in order, and all. */
  mapsInOrder(history) {
    return by(history, 'maps').flatMap(({ id, count }) => {
      const items = by(history, 'item').filter((each) => each.id === id);
      const wrong = items.filter(({ value }, place) => value !== place ** 2);
      const isWhole = by(history, 'mapped').some((each) => each.id === id && each.how === 'ok');
      if (wrong.length > 0) return [`${id}: item ${items.indexOf(wrong[0])} is ${wrong[0].value}`];
      return isWhole && items.length !== count ? [`${id} gave ${items.length} of ${count}`] : [];
    });
  },

  /** Nobody fails who has done no wrong, and for whom nobody else's fault is enough. */
  sparesInnocents(history, plan) {
    const wrong = troubles(history, plan);
    const losses = lossesOf(history, plan);
    const programs = plan.steps.filter(({ kind }) => kind === 'program');
    const mayLoseWorkers = losses > 0 || by(history, 'dies').length > 0 || programs.length > 1;
    const longest = Math.max(0, ...wrong.map(([from, to]) => to - from));
    const isFull = (at) =>
      plan.steps.some((step) => step.kind === 'full' && step.at <= at && step.at + step.ms >= at);
    const failed = by(history, 'settles').find(({ how }) => how === 'RangeError');
    const isExcused = ({ kind, isCancelled, begun, once }, settled) => {
      const { how, message, at } = settled;
      if (how === 'CancelledError') {
        if (wasStopped(history, at)) return true;
        return kind === 'scheduled' && failed !== undefined && failed.at <= at;
      }
      if (kind === 'keyed add') return how === 'FailedPreconditionError';
      if (how === 'RangeError') return kind === 'failing';
      if (how === 'ok') return !['poison', 'failing', 'stop'].includes(kind);
      if (how === 'AbortError') return isCancelled === true;
      if (how === 'FailedPreconditionError') return mayLose(history, plan, settled);
      if (how === 'DeadlineExceededError') return kind === 'deadline';
      if (how !== 'UnavailableError') return false;
      if (kind === 'poison') return true;
      if (once && /lost its worker once/.test(message)) return mayLoseWorkers;
      if (kind === 'keyed' && /insufficient resources/.test(message)) return isFull(at);
      if (/available for/.test(message)) return longest > AWAY_MS;
      return losses > RETRIES && begun.length > RETRIES;
    };
    const calls = [...callsOf(history).values()].flatMap((call) =>
      call.settled
        .filter((settled) => !isExcused(call, settled))
        .map(({ how, message = '' }) => `${call.id} (${call.kind}): ${how} ${message}`),
    );
    const maps = by(history, 'mapped').flatMap((mapped) => {
      const { id, how, message = '' } = mapped;
      const isLost = how === 'FailedPreconditionError' && mayLose(history, plan, mapped);
      const isFine = how === 'ok' || isLost || wasStopped(history, mapped.at);
      return isFine || (losses > RETRIES && how === 'UnavailableError')
        ? []
        : [`${id}: ${how} ${message}`];
    });
    return [...calls, ...maps];
  },

  /** A function begins again only because of a loss. */
  beginsSeldom(history, plan) {
    const losses = lossesOf(history, plan);
    return [...callsOf(history).values()].flatMap(({ id, kind, retries = RETRIES, begun }) => {
      const most = kind === 'poison' ? retries + 1 : 2 + losses;
      const isKeyed = kind === 'keyed';
      return begun.length > most && !isKeyed ? [`${id} began ${begun.length} times`] : [];
    });
  },

  /** With `retries: 0` a function begins once. */
  beginsOnce(history) {
    return [...callsOf(history).values()].flatMap(({ id, once, begun }) =>
      once && begun.length > 1 ? [`${id} with retries: 0 began ${begun.length} times`] : [],
    );
  },

  /** A function that was begun before is told so. */
  tellsAttempts(history) {
    return [...callsOf(history).values()].flatMap(({ id, begun }) => {
      const attempts = begun.map(({ attempt }) => attempt);
      const isTold = new Set(attempts).size === attempts.length;
      return isTold ? [] : [`${id} began as attempt ${attempts.join(', ')}`];
    });
  },

  /** The result of a key is made once, unless what was made is lost. */
  makesKeysOnce(history, plan) {
    // Who takes the cluster does not know what the other was about to keep.
    const rivals = plan.steps.filter(({ kind }) => kind === 'program').length - 1;
    const deaths = by(history, 'dies').filter(({ why }) => why === 'a function').length;
    const losses = lossesOf(history, plan) + deaths + rivals;
    const keys = new Set(
      by(history, 'calls').flatMap(({ key }) => (key === undefined ? [] : [key])),
    );
    return [...keys].flatMap((key) => {
      const made = by(history, 'ends').filter(({ id }) => id === key);
      return made.length > 1 + losses ? [`${key} was made ${made.length} times`] : [];
    });
  },

  /** A variable has, at each read, what was added before, and nothing that comes later. */
  countsRight(history) {
    const calls = [...callsOf(history).values()].filter(({ kind }) => kind === 'add');
    return by(history, 'read').flatMap(({ id, at, place, value }) => {
      const from = by(history, 'reads').find((each) => each.id === id).at;
      const own = calls.filter((each) => each.place === place);
      const least = own.filter(({ settled }) =>
        settled.some((s) => s.how === 'ok' && s.at <= from),
      );
      const most = own.filter((call) => call.at <= at);
      if (value >= least.length && value <= most.length) return [];
      return [`${id} read ${value}, not ${least.length} to ${most.length}`];
    });
  },

  /** What is restored was saved last, and fits together; nothing that was added since is missing. */
  restoresNewest(history) {
    const found = [];
    let last = 'none';
    /** What may be restored: what was saved last, and what was begun since. */
    let possible = new Set([last]);
    const restores = new Map();
    for (const { what, place, save, done, value } of history) {
      if (what === 'saves') {
        possible.add(save);
        for (const each of restores.values()) each.add(save);
      } else if (what === 'saved') {
        last = save;
        const all = [...possible];
        possible = new Set(all.slice(all.indexOf(save)));
      } else if (what === 'restores') restores.set(place, new Set(possible));
      else if (what === 'restored') {
        if (!restores.get(place)?.has(save)) {
          found.push(`${place} restored ${save}, but ${last} was saved last`);
        }
        if (value !== done) found.push(`${place} restored ${value} beside ${done}`);
        restores.delete(place);
      } else if (what === 'trained' && value !== done) {
        found.push(`${place} has ${value} after ${done} steps`);
      }
    }
    return found;
  },

  /** No work of a program fails but for its end. */
  worksOn(history, plan) {
    return by(history, 'work fails')
      .filter((each) => !(each.how === 'FailedPreconditionError' && mayLose(history, plan, each)))
      .filter((each) => !(each.how === 'CancelledError' && wasStopped(history, each.at)))
      .map(({ place, kind, how, message }) => `${place}: ${kind}: ${how} ${message}`);
  },

  /** A server that is back has its clients back soon, whatever it advertises. */
  reconnectsSoon(history, plan) {
    const crashes = plan.steps.filter(({ kind }) => kind === 'serverCrash');
    const isAll = plan.steps.every(({ kind }) => kind === 'serverCrash' || !FAULTS.includes(kind));
    if (!isAll) return [];
    return crashes.flatMap((crash) => {
      const until = crash.at + crash.ms + RECONNECT_MS;
      const isAlone = crashes.every(
        (each) => each === crash || each.at > until || each.at + each.ms < crash.at,
      );
      const downs = by(history, 'disconnected').filter(
        ({ at }) => at >= crash.at && at <= crash.at + crash.ms,
      );
      return (isAlone ? downs : []).flatMap(({ at, place }) => {
        const isBack = history.some(
          (each) =>
            each.place === place &&
            ['connected', 'reconnected', 'is done'].includes(each.what) &&
            each.at > at &&
            each.at <= until,
        );
        return isBack ? [] : [`${place} was not back by ${until}`];
      });
    });
  },

  /** The doctor sees a problem while calls wait for nobody, and none when all is well. */
  doctorKnows(history, plan) {
    const calm = by(history, 'calm')[0]?.at ?? 0;
    if (plan.steps.filter(({ kind }) => kind === 'program').length > 1) return [];
    const isServed = (from, to, needs = 0) => {
      const serving = servingOf(history, (name) => amountOf(plan, name) >= needs);
      return serving.some(([since, until]) => since < to && until > from);
    };
    const isWrong = (from, to) =>
      troubles(history, plan).some(([begins, ends]) => begins < to && ends > from);
    const calls = [...callsOf(history).values()];
    const endsAt = by(history, 'is done')[0]?.at ?? Number.POSITIVE_INFINITY;
    return by(history, 'doctor').flatMap(({ at, from, problems }) => {
      const waits = calls.some(
        (call) =>
          call.at < from - NOTICE_MS &&
          call.settled.every((each) => each.at > at) &&
          !isServed(from - NOTICE_MS, at, call.needs),
      );
      if (waits && problems.length === 0) {
        return [`nothing at ${at}, and calls wait for nobody`];
      }
      const isWell =
        !waits &&
        !wasStopped(history, at) &&
        from > calm + RECOVERY_MS &&
        !isWrong(from, at) &&
        isServed(from, at) &&
        at < endsAt;
      return isWell && problems.length > 0 ? [`at ${at}: ${problems[0]}`] : [];
    });
  },

  /** A function hears that its worker is about to leave, and its call keeps the result. */
  tellsOfLeaving(history, plan) {
    const patient = [...callsOf(history).values()].filter(({ isPatient }) => isPatient);
    return by(history, 'leaves').flatMap(({ place: node, at }) => {
      if (
        troubles(history, { steps: plan.steps.filter(({ kind }) => kind !== 'leave') }).length > 0
      ) {
        return [];
      }
      return patient.flatMap(({ id, begun }) => {
        const here = begun.find((each) => processOf(each.place) === node && each.at < at);
        const isOf = (each) => each.id === id && each.place === here?.place;
        const ended = by(history, 'ends').find(isOf);
        if (here === undefined || ended?.at <= at) return [];
        const heard = by(history, 'hears').find(isOf);
        return heard?.at <= at + HEARD_MS
          ? []
          : [`${id} does not hear at ${at} that ${node} leaves`];
      });
    });
  },

  /** Some time after the last fault one program has the cluster, and the others know it. */
  hasOneHolder(history, plan) {
    if (areApart(plan)) return [];
    const calm = by(history, 'calm')[0]?.at ?? 0;
    // From its first to its last success a program has the cluster.
    const holders = new Map();
    for (const { at, place, how } of by(history, 'settles')) {
      if (how !== 'ok' || at <= calm + RECOVERY_MS) continue;
      const name = processOf(place);
      holders.set(name, [holders.get(name)?.[0] ?? at, at]);
    }
    const spans = [...holders].toSorted(([, [one]], [, [other]]) => one - other);
    const both = spans.slice(1).flatMap(([name, [from]], at) => {
      const [before, [, to]] = spans[at];
      return from < to ? [`${before} and ${name} have the cluster`] : [];
    });
    let holder;
    let since = 0;
    for (const { at, what, how, place, by: who, subject = '' } of history) {
      if (what === 'stored' && RUN_KEY.test(subject) && who !== holder) [holder, since] = [who, at];
      const isAfter = at > Math.max(calm, since) + RECOVERY_MS;
      if (what === 'settles' && how === 'ok' && isAfter && processOf(place) !== holder) {
        return [...both, `${place} goes on at ${at}, and ${holder} has the cluster since ${since}`];
      }
    }
    return both;
  },

  /** A program that has learnt of its end writes nothing any more. */
  writesNothingLost(history) {
    const learnt = new Map();
    const found = [];
    for (const { at, place, what, how, message, by: who, subject } of history) {
      const program = what === 'stored' ? who : processOf(place);
      // A call with a key may not write to variables, and fails with the same class.
      const isEnd = how === 'FailedPreconditionError' && !/call with a key/.test(message);
      if (isEnd && !learnt.has(program)) learnt.set(program, at);
      if (what === 'stored' && learnt.get(program) < at) found.push(`${program} wrote ${subject}`);
    }
    return found;
  },

  /** Programs that hold a key each are told, and so is who asks the doctor. */
  tellsOfTwo(history, plan) {
    if (!areApart(plan)) return [];
    const [one, two] = plan.steps.filter(({ kind }) => kind === 'program');
    const wrong = troubles(history, plan).map(([, to]) => to);
    const from = Math.max(two.at + RECOVERY_MS, ...wrong);
    const to = two.at + two.ms;
    if (from >= to) return [];
    const isTold = ({ name }) =>
      history.some(
        ({ what, code, place, at }) =>
          what === 'warning' && code === 'ALLSTOP_TWO_COORDINATORS' && place === name && at <= from,
      );
    const looks = by(history, 'doctor').filter((each) => each.from >= from && each.at < to);
    const blind = looks.filter(
      ({ problems }) => !problems.some((each) => each.startsWith('coordinators')),
    );
    return [
      ...[one, two].filter((each) => !isTold(each)).map(({ name }) => `${name} is not told`),
      ...blind.map(({ at }) => `the doctor is not told at ${at}`),
    ];
  },

  /** A stop has one record, everywhere; the program throws its error. */
  stopsOnce(history, plan) {
    const asked = by(history, 'stops');
    if (asked.length === 0) return [];
    const ends = by(history, 'stopped');
    if (ends.length === 0 && by(history, 'is done').some(({ isLost }) => !isLost)) {
      return ['a stop that nobody has heard of'];
    }
    return ends.flatMap(({ place, at, record, of, everywhere }) => {
      const isWrong = troubles(history, plan).some(([from, to]) => from < at && to > at);
      const others = Object.entries(everywhere).filter(([, each]) => each !== record);
      const thrown = by(history, 'stop thrown').filter((each) => each.place === place);
      return [
        ...(asked.some(({ id }) => id === of) ? [] : [`${place} has the stop ${of}`]),
        ...(isWrong ? [] : others.map(([name, each]) => `${name} has the stop ${each}`)),
        ...(thrown.length === 1 && thrown[0].message === of
          ? []
          : [`${place} does not throw ${of}`]),
      ];
    });
  },

  /** A resource is had by no more functions at once than there is of it. */
  keepsResources(history, plan) {
    const found = [];
    /** By process, by the thread and the call: how much it has. */
    const had = new Map();
    for (const { what, place, name, id, needs } of history) {
      const process = processOf(place);
      const key = `${place} ${id}`;
      if (what === 'begins' && needs !== undefined) {
        const own = had.get(process) ?? new Map();
        had.set(process, own.set(key, needs));
        const sum = [...own.values()].reduce((total, each) => total + each, 0);
        const most = amountOf(plan, process);
        if (sum > most) found.push(`${process} uses ${sum} of ${most} for ${id}`);
      } else if (what === 'frees') had.get(process)?.delete(key);
      else if (what === 'dies' || what === 'exits') had.delete(name);
      else if (what === 'thread ends') {
        const own = had.get(processOf(name));
        for (const each of own?.keys() ?? []) if (each.startsWith(`${name} `)) own.delete(each);
      }
    }
    return found;
  },

  /** An item of a data set is given once, in order; a generator is ended once. */
  drawsOnce(history) {
    const found = [];
    const next = new Map();
    for (const { what, made, number } of history) {
      if (what === 'makes') next.set(made, 0);
      if (what !== 'draws') continue;
      if (number < (next.get(made) ?? 0)) found.push(`${made} gives ${number} again`);
      next.set(made, number + 1);
    }
    for (const { made, place, at } of by(history, 'makes')) {
      const returns = by(history, 'returns').filter((each) => each.made === made).length;
      const process = processOf(place);
      const isOver = history.some(
        (each) => each.what === 'session-over' && each.place === process && each.at > at,
      );
      const hasDied = by(history, 'dies').some(({ name }) => name === process);
      if (returns > 1) found.push(`${made} is ended ${returns} times`);
      if (returns === 0 && isOver && !hasDied) found.push(`${made} of ${place} is never ended`);
    }
    return found;
  },

  /** The error of a scheduled function is thrown once, and after a join all have settled. */
  joinsAll(history) {
    const calls = [...callsOf(history).values()].filter(({ kind }) =>
      ['scheduled', 'failing'].includes(kind),
    );
    const found = [];
    for (const { at, place } of by(history, 'joins')) {
      const open = calls.filter(
        (call) =>
          call.place === place && call.at < at && call.settled.every((each) => each.at > at),
      );
      if (open.length > 0) found.push(`${place} has joined, and not ${open[0].id}`);
    }
    for (const { id, place } of calls.filter(({ kind }) => kind === 'failing')) {
      const thrown = by(history, 'throws').filter((each) => each.message === id).length;
      const isDone = by(history, 'joins').some((each) => each.place === place);
      if (thrown > 1 || (thrown === 0 && isDone)) found.push(`${id} is thrown ${thrown} times`);
    }
    const others = by(history, 'throws').filter(({ how }) => how === 'TypeError');
    return [...found, ...others.map(({ message }) => `thrown: ${message}`)];
  },

  /** What waits has its turn, whatever comes after it. */
  nobodyStarves(history, plan) {
    if (plan.steps.filter(({ kind }) => kind === 'program').length > 1) return [];
    const works = plan.steps.flatMap(({ works: own = [] }) => own);
    const mostMs = works.reduce((sum, { count = 0, ms = 1_000 }) => sum + count * ms, 0);
    const serving = servingOf(history);
    const wrong = troubles(history, plan);
    const sharedMs = (spans, from, to) =>
      spans.reduce((sum, [since, until]) => {
        return sum + Math.max(0, Math.min(until, to) - Math.max(since, from));
      }, 0);
    return [...callsOf(history).values()].flatMap(({ id, at, needs, settled }) => {
      const to = settled[0]?.at;
      if (to === undefined || needs !== undefined) return [];
      const firstServed = Math.min(
        ...serving.filter(([, until]) => until > at).map(([since]) => since),
      );
      const from = Math.max(at, firstServed);
      const waited = to - from - sharedMs(wrong, from, to);
      return waited > mostMs + RECOVERY_MS ? [`${id} has waited ${Math.round(waited)} ms`] : [];
    });
  },

  /** Every program comes to its end. */
  ends(history) {
    return by(history, 'unfinished').map(({ error }) => error);
  },

  /** Nothing is thrown that nobody catches, and nobody is warned of what is right. */
  isQuiet(history, plan) {
    const isRight = ({ code }) =>
      code === 'ALLSTOP_NO_WORKER' || (code === 'ALLSTOP_TWO_COORDINATORS' && areApart(plan));
    const warnings = by(history, 'warning').filter((warning) => !isRight(warning));
    return [...by(history, 'uncaught'), ...warnings].map(
      ({ place, what, error, message }) => `${place}: ${what} ${error ?? message}`,
    );
  },

  /** What a server has of clients is bounded by the processes that there are. */
  isBounded(history, plan) {
    const processes = plan.steps.filter(({ kind }) => ['node', 'program'].includes(kind)).length;
    const clients = by(history, 'over').flatMap((each) => each.clients);
    const sum = clients.reduce((total, each) => total + each, 0);
    // Each has one connection; the last of one that has died may not be given up yet.
    const most = 2 * processes + by(history, 'dies').length + 1;
    return sum > most ? [`${sum} clients of ${processes} processes`] : [];
  },

  /** No more is on its way to a process, or from it, than the windows of those that it talks to. */
  keepsWindows(history, plan) {
    const of = (kind) => plan.steps.filter((step) => step.kind === kind);
    const isProgram = (name) => of('program').some((step) => step.name === name.split('~')[0]);
    const sessions = by(history, 'serving').length;
    return by(history, 'over').flatMap(({ bytes }) =>
      Object.entries(bytes).flatMap(([name, most]) => {
        const peers = isProgram(name) ? sessions + of('node').length : of('program').length;
        const limit = peers * WINDOW_BYTES + OTHER_BYTES;
        return most > limit ? [`${most} bytes to or from ${name}, which may be ${limit}`] : [];
      }),
    );
  },

  /** Nobody holds what has settled, but calls without their values that a lost node may have still. */
  forgets(history, plan) {
    const killed = by(history, 'dies').filter(({ why }) => why === 'a function').length;
    const isAlone = plan.steps.filter(({ kind }) => kind === 'program').length === 1;
    // One that was taken over has lost all nodes at once.
    const taken = isAlone ? 0 : plan.steps.filter(({ kind }) => kind === 'node').length;
    const most = CALLS_OF_A_NODE * (lossesOf(history, plan) + killed + taken);
    return by(history, 'keeps').flatMap(({ place, held }) =>
      Object.entries(held)
        // Calls of another program may be under way.
        .filter(([name]) => name === place || isAlone)
        .flatMap(([name, { calls, values }]) => [
          ...(values > 0 && name === place ? [`${name} holds ${values} values`] : []),
          ...(calls > most ? [`${name} holds ${calls} calls, not ${most}`] : []),
        ]),
    );
  },

  /** The servers keep a message for each key, the last checkpoints, and nobody's consumer. */
  storesLittle(history, plan) {
    const keys = new Set(by(history, 'calls').flatMap(({ key = [] }) => key)).size;
    const programs = plan.steps.filter(({ kind }) => kind === 'program').length;
    const lives = programs + by(history, 'dies').length;
    const mostOf = (stream) => {
      if (stream.startsWith('KV_allstop_')) return 1;
      return stream.startsWith('OBJ_') ? 2 * (KEPT_CHECKPOINTS + lives) : keys;
    };
    return by(history, 'over').flatMap(({ kept }) =>
      kept.flatMap(({ stream, messages, consumers }) => [
        ...(messages > mostOf(stream) ? [`${stream} has ${messages} messages`] : []),
        ...(consumers > lives ? [`${stream} has ${consumers} consumers`] : []),
      ]),
    );
  },
};

/** @returns what each judge has found, as [judge, text] */
export function judge(history, plan) {
  return Object.entries(judges).flatMap(([name, of]) =>
    of(history, plan).map((text) => [name, text]),
  );
}
