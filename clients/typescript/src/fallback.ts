// What a client does while nobody answers it. No network and no clock: `now` is an argument, in
// milliseconds.

import { AMOUNT_MAX, type Charged, type Decision, type Denial, type Lease } from "./types.js";

const WHOLE_PPM = 1_000_000n;
/** How many limits' rules are kept. */
const RULES_MAX = 1000;
/** How many keys have a share of their own; those beyond it have one together, by limit. */
const KEYS_MAX = 10_000;
const CLIENTS_MAX = 1000;
/** For how many descriptions of work it is known what they were charged. */
const WORK_MAX = 1024;
/** How many counts are kept for the report. */
const ACCOUNTS_MAX = 10_000;
/** How many seconds a budget remembers at most. */
const SLICES_MAX = 3600;
/** What a refusal asks to wait that ends when the authority is back. */
const AWAY_MS = 1000;

/** Reads a duration as protobuf writes it in JSON, "1.500s", in milliseconds. */
export function duration(value: unknown): number {
  if (value === undefined || value === null) return 0;
  if (typeof value !== "string" || !/^\d+(\.\d+)?s$/.test(value)) throw new TypeError("it is no duration");
  return Number(value.slice(0, -1)) * 1000;
}

type Mode = "open" | "share" | "closed";

export interface Rule {
  mode: Mode;
  /** In parts per million. Absent is not 0: then the one that the client was configured with counts. */
  sharePpm?: bigint;
  unlimited: boolean;
  revision: bigint;
  dimensions: Map<string, { amount: bigint; intervalNs: bigint; burst: bigint }>;
}

interface RetryRule {
  maxRetries: number;
  maxFractionBp: number;
  windowMs: number;
  minRequests: number;
  retryAfterMs: number;
}

const standardRetries: RetryRule = {
  maxRetries: 3, maxFractionBp: 2000, windowMs: 300_000, minRequests: 50, retryAfterMs: 60_000,
};

/** One client's requests over the window, by the second. */
class Budget {
  rule = standardRetries;
  revision?: bigint;
  #slices: { second: number; total: number; retries: number }[] = [];
  #total = 0;
  #retries = 0;

  #forget(now: number): void {
    while (this.#slices[0] && (this.#slices.length > SLICES_MAX ||
        this.#slices[0].second * 1000 <= now - this.rule.windowMs)) {
      const oldest = this.#slices.shift();
      this.#total -= oldest?.total ?? 0;
      this.#retries -= oldest?.retries ?? 0;
    }
  }

  refuses(now: number, attempt: number): Denial | undefined {
    this.#forget(now);
    const { maxRetries, minRequests, maxFractionBp, retryAfterMs } = this.rule;
    if (attempt > maxRetries) return denial("ATTEMPTS");
    const over = this.#total > minRequests && this.#retries * 10_000 > this.#total * maxFractionBp;
    return attempt > 0 && over ? denial("RETRY_BUDGET", undefined, retryAfterMs) : undefined;
  }

  record(now: number, attempt: number): void {
    const second = Math.floor(now / 1000);
    let last = this.#slices.at(-1);
    if (last?.second !== second) this.#slices.push((last = { second, total: 0, retries: 0 }));
    const retry = attempt > 0 ? 1 : 0;
    last.total++;
    last.retries += retry;
    this.#total++;
    this.#retries += retry;
    this.#forget(now);
  }
}

/** A bucket that began empty. Its level is in parts of a token that make all of it whole. */
interface Share {
  at: bigint;
  level: bigint;
}

export interface Account {
  limit: string;
  key: string;
  dimension: string;
  class: string;
  tokens: number;
  booked: number;
}

/** Rules, retry budgets, shares, and the state of an incident. */
export class Machine {
  readonly #standard: Rule;
  readonly #rules = new Map<string, Rule>();
  readonly #budgets = new Map<string, Budget>();
  readonly #work = new Map<string, readonly Charged[]>();
  readonly #shares = new Map<string, Share>();
  readonly accounts = new Map<string, Account>();
  awaySince?: number | undefined;
  admitted = 0;
  refused = 0;
  #slow = 0;
  #good = 0;

  constructor(mode: Mode, share: number) {
    this.#standard = {
      mode, sharePpm: BigInt(Math.round(share * 1e6)), unlimited: false, revision: 0n, dimensions: new Map(),
    };
  }

  /** The revision of which all that matters is known. */
  known(client: string, limits: readonly string[]): bigint | undefined {
    let revision = this.#budgets.get(client)?.revision;
    if (revision === undefined || limits.length === 0) return undefined;
    for (const limit of limits) {
      const rule = this.#rules.get(limit);
      if (!rule) return undefined;
      if (rule.revision < revision) revision = rule.revision;
    }
    return revision;
  }

  /** Takes in the fallbacks of an answer. What can't be read is left out. */
  learn(client: string, news: unknown): void {
    if (news === undefined || news === null) return;
    try {
      const { revision, limits, retries } = news as { revision: string; limits?: unknown[]; retries?: unknown };
      const at = BigInt(revision);
      const rules = (limits ?? []).map((one) => rule(one, at));
      const budget = retryRule(retries);
      for (const [limit, one] of rules) keep(this.#rules, limit, one, RULES_MAX);
      const mine = this.#budget(client);
      mine.rule = budget;
      mine.revision = at;
    } catch {
      // A newer node may say things that this client does not understand.
    }
  }

  noteWork(work: string, charges: readonly Charged[]): void {
    keep(this.#work, work, charges, WORK_MAX);
  }

  work(work: string): readonly Charged[] | undefined {
    return this.#work.get(work);
  }

  #budget(client: string): Budget {
    const budget = this.#budgets.get(client) ?? new Budget();
    keep(this.#budgets, client, budget, CLIENTS_MAX);
    return budget;
  }

  /** Notes what the authority has admitted. */
  record(now: number, client: string, attempt: number): void {
    this.#budget(client).record(now, attempt);
  }

  /** A node has answered in time. How long the incident was, where this ends it. */
  answered(now: number): number | undefined {
    this.#slow = 0;
    if (this.awaySince === undefined || ++this.#good < 3) return undefined;
    const lasted = now - this.awaySince;
    this.awaySince = undefined;
    this.#shares.clear();
    return lasted;
  }

  /**
   * Nobody has answered; certain: nobody can be reached, or there is no majority. True where an
   * incident begins with it: at once where it is certain, else with the third slow call in a row.
   */
  missed(now: number, certain: boolean): boolean {
    this.#good = 0;
    this.#slow++;
    if (this.awaySince !== undefined || !(certain || this.#slow >= 3)) return false;
    this.awaySince = now;
    this.admitted = this.refused = 0;
    this.#shares.clear();
    return true;
  }

  /** Decides without the authority. Every charge or none. */
  decide(
    now: number, who: { client: string; class: string; attempt: number }, charges: readonly Charged[] | undefined,
    lease: Lease,
  ): Decision {
    const budget = this.#budget(who.client);
    const refusal = budget.refuses(now, who.attempt) ?? this.#charge(now, charges);
    const rest = { source: "local", warnings: [], remaining: [], repeated: false } as const;
    if (refusal) {
      this.refused++;
      return { granted: false, denials: [refusal], ...rest };
    }
    this.admitted++;
    budget.record(now, who.attempt);
    for (const c of charges ?? []) this.#count(c, who.class);
    return { granted: true, denials: [], lease, ...rest };
  }

  #rule(limit: string): Rule {
    return this.#rules.get(limit) ?? this.#standard;
  }

  #count(c: Charged, kind: string): void {
    if (this.#rule(c.limit).unlimited) return;
    const at = JSON.stringify([c.limit, c.key, c.dimension, kind]);
    const account = this.accounts.get(at);
    if (account) account.tokens = Math.min(AMOUNT_MAX, account.tokens + c.amount);
    else if (this.accounts.size < ACCOUNTS_MAX) {
      const { limit, key, dimension, amount } = c;
      this.accounts.set(at, { limit, key, dimension, class: kind, tokens: amount, booked: 0 });
    }
  }

  #charge(now: number, charges: readonly Charged[] | undefined): Denial | undefined {
    // Where it is undefined nobody knows what this work is charged.
    if (!charges) return this.#standard.mode === "open" ? undefined : denial("LOCAL_CLOSED", undefined, AWAY_MS);
    const taken: [Share, bigint][] = [];
    let worst: Denial | undefined;
    for (const c of charges) {
      const r = this.#rule(c.limit);
      if (r.unlimited || r.mode === "open") continue;
      const refusal = r.mode === "closed" ? denial("LOCAL_CLOSED", c, AWAY_MS) : this.#take(now, r, c, taken);
      if (refusal && (!worst || outlasts(refusal, worst))) worst = refusal;
    }
    if (worst) for (const [share, units] of taken) share.level += units;
    return worst;
  }

  #take(now: number, r: Rule, c: Charged, taken: [Share, bigint][]): Denial | undefined {
    const ppm = r.sharePpm ?? this.#standard.sharePpm ?? 0n;
    const pace = r.dimensions.get(c.dimension);
    if (!pace || ppm === 0n || pace.amount === 0n || pace.burst === 0n) return denial("LOCAL_SHARE", c, AWAY_MS);
    const whole = pace.intervalNs * WHOLE_PPM;
    const most = (pace.burst * ppm) / WHOLE_PPM || 1n;
    if (BigInt(c.amount) > most) return denial("LOCAL_SHARE", c, AWAY_MS);
    // There has been no time in which anything was earned.
    if (this.awaySince === undefined) return denial("RATE", c, AWAY_MS);
    const share = this.#share(c, nanos(this.awaySince));
    const at = nanos(now);
    if (at > share.at) {
      share.level += (at - share.at) * pace.amount * ppm;
      share.at = at;
    }
    if (share.level > most * whole) share.level = most * whole;
    const need = BigInt(c.amount) * whole;
    if (share.level >= need) {
      share.level -= need;
      taken.push([share, need]);
      return undefined;
    }
    const rate = pace.amount * ppm * 1_000_000n;
    return denial("RATE", c, Math.max(1, Number((need - share.level + rate - 1n) / rate)));
  }

  #share(c: Charged, since: bigint): Share {
    let at = JSON.stringify([c.limit, c.key, c.dimension]);
    // Together they get what one key gets: less is admitted, never more.
    if (!this.#shares.has(at) && this.#shares.size >= KEYS_MAX) at = JSON.stringify([c.limit, "", c.dimension]);
    let share = this.#shares.get(at);
    if (!share) this.#shares.set(at, (share = { at: since, level: 0n }));
    return share;
  }
}

function nanos(ms: number): bigint {
  return BigInt(Math.round(ms * 1e6));
}

/** Keeps a value as the newest, and forgets the oldest beyond a bound. */
function keep<V>(map: Map<string, V>, key: string, value: V, most: number): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > most) for (const oldest of map.keys()) return void map.delete(oldest);
}

function denial(reason: string, c?: Charged, waitMs?: number): Denial {
  const where = { limit: c?.limit ?? "", key: c?.key ?? "", dimension: c?.dimension ?? "" };
  if (waitMs === undefined) return { reason, ...where, never: true };
  return { reason, ...where, never: false, retryAfterMs: waitMs };
}

function outlasts(one: Denial, other: Denial): boolean {
  if (one.reason === "RATE" && other.reason === "RATE") return (one.retryAfterMs ?? 0) > (other.retryAfterMs ?? 0);
  return other.reason === "RATE";
}

const modes = new Map<unknown, Mode>([
  ["OPEN_ON_LOSS", "open"], ["SHARE_ON_LOSS", "share"], ["CLOSED_ON_LOSS", "closed"],
]);

// It is JSON, and looked at here.
function rule(one: any, revision: bigint): [string, Rule] {
  const mode = modes.get(one.mode);
  if (!mode || typeof one.limit !== "string") throw new TypeError("it is no rule");
  const dimensions: Rule["dimensions"] = new Map();
  for (const d of one.dimensions ?? []) {
    const [amount, burst] = [BigInt(d.amount ?? 0), BigInt(d.burst ?? 0)];
    const pace = { amount, intervalNs: nanos(duration(d.interval)), burst };
    if (pace.amount < 0n || pace.intervalNs < 1n || pace.burst < 0n) throw new TypeError("a rate is out of range");
    dimensions.set(String(d.name), pace);
  }
  const read: Rule = { mode, unlimited: one.unlimited === true, revision, dimensions };
  if (one.share_ppm !== undefined && one.share_ppm !== null) {
    read.sharePpm = BigInt(one.share_ppm);
    if (read.sharePpm < 0n || read.sharePpm > WHOLE_PPM) throw new TypeError("a share is out of range");
  }
  return [one.limit, read];
}

function retryRule(one: any): RetryRule {
  // A client to which the authority gives none has one while it is away.
  if (one === undefined || one === null) return standardRetries;
  return {
    maxRetries: count(one.max_retries), maxFractionBp: count(one.max_fraction_bp), minRequests: count(one.min_requests),
    windowMs: Math.min(Math.max(duration(one.window), 1000), SLICES_MAX * 1000),
    retryAfterMs: Math.max(duration(one.retry_after), 1),
  };
}

function count(value: unknown): number {
  const n = Number(value);
  if (!Number.isInteger(n) || n < 0) throw new TypeError("it is no count");
  return n;
}
