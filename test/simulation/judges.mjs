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
const FAULTS = ['crash', 'freeze', 'cut', 'slow', 'serverCrash', 'secret', 'leave'];

/** A client finds a server again, whose address it was given, within this time. */
const RECONNECT_MS = 8_000;
/** The doctor may take so long to notice. */
const NOTICE_MS = 6_000;

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

/** When nodes served: [from, to] for each session. */
function servingOf(history) {
  const open = new Map();
  const found = [];
  const end = (name, at) => {
    if (open.has(name)) found.push([open.get(name), at]);
    open.delete(name);
  };
  for (const { what, place, name, at } of history) {
    if (what === 'serving') open.set(place, at);
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
    const longest = Math.max(0, ...wrong.map(([from, to]) => to - from));
    const isExcused = ({ kind, isCancelled, begun }, settled) => {
      const { how, message } = settled;
      if (kind === 'keyed add') return how === 'FailedPreconditionError';
      if (how === 'ok') return kind !== 'poison';
      if (how === 'AbortError') return isCancelled === true;
      if (how === 'FailedPreconditionError') return mayLose(history, plan, settled);
      if (how === 'DeadlineExceededError') return kind === 'deadline';
      if (how !== 'UnavailableError') return false;
      if (kind === 'poison') return true;
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
      const isFine = how === 'ok' || isLost;
      return isFine || (losses > RETRIES && how === 'UnavailableError')
        ? []
        : [`${id}: ${how} ${message}`];
    });
    return [...calls, ...maps];
  },

  /** A function begins again only because of a loss. */
  beginsSeldom(history, plan) {
    const losses = lossesOf(history, plan);
    return [...callsOf(history).values()].flatMap(({ id, kind, begun }) => {
      const most = kind === 'poison' ? RETRIES + 1 : 2 + losses;
      const isKeyed = kind === 'keyed';
      return begun.length > most && !isKeyed ? [`${id} began ${begun.length} times`] : [];
    });
  },

  /** The result of a key is made once, unless what was made is lost. */
  makesKeysOnce(history, plan) {
    // Who takes the cluster does not know what the other was about to keep.
    const rivals = plan.steps.filter(({ kind }) => kind === 'program').length - 1;
    const losses = lossesOf(history, plan) + rivals;
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
    const serving = servingOf(history);
    const isServed = (from, to) => serving.some(([since, until]) => since < to && until > from);
    const isWrong = (from, to) =>
      troubles(history, plan).some(([begins, ends]) => begins < to && ends > from);
    const calls = [...callsOf(history).values()];
    // The place of a worker that has died stays 'lost' until another takes it.
    const hasLost = by(history, 'dies').length > 0;
    const endsAt = by(history, 'is done')[0]?.at ?? Number.POSITIVE_INFINITY;
    return by(history, 'doctor').flatMap(({ at, from, problems }) => {
      const waits = calls.some(
        (call) => call.at < from - NOTICE_MS && call.settled.every((each) => each.at > at),
      );
      if (waits && !isServed(from - NOTICE_MS, at) && problems.length === 0) {
        return [`nothing at ${at}, and calls wait for nobody`];
      }
      const isWell =
        !hasLost &&
        from > calm + RECOVERY_MS &&
        !isWrong(from, at) &&
        isServed(from, at) &&
        at < endsAt;
      return isWell && problems.length > 0 ? [`at ${at}: ${problems[0]}`] : [];
    });
  },

  /** Some time after the last fault one program has the cluster, and the others know it. */
  hasOneHolder(history) {
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

  /** Every program comes to its end. */
  ends(history) {
    return by(history, 'unfinished').map(({ error }) => error);
  },

  /** Nothing is thrown that nobody catches, and nobody is warned of what is right. */
  isQuiet(history) {
    const warnings = by(history, 'warning').filter(({ code }) => code !== 'ALLSTOP_NO_WORKER');
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
};

/** @returns what each judge has found, as [judge, text] */
export function judge(history, plan) {
  return Object.entries(judges).flatMap(([name, of]) =>
    of(history, plan).map((text) => [name, text]),
  );
}
