// The client: acquire, settle, release, renew, with an answer in time.

import { randomBytes } from "node:crypto";
import type { SecureContextOptions } from "node:tls";
import { Asker, Silence } from "./ask.js";
import * as check from "./check.js";
import { Machine } from "./fallback.js";
import { currentAttempt } from "./retry.js";
import { endpoint, Transport } from "./transport.js";
import {
  type Charge, type Charged, Closed, type Decision, Denied, type Lease, RequestError, type Settlement, Unanswered,
  type Usage,
} from "./types.js";
import * as wire from "./wire.js";

const ENDPOINTS_MAX = 32;
const REPORT_MAX = 64;
const REPORT_WITHIN_MS = 1000;
/** For how long a lease is good that was granted here. */
const LOCAL_LIFE_MS = 5000;

/** Where warnings go: console is one. */
export interface Logger {
  warn(message: string): void;
}

export interface ClientOptions {
  /**
   * HTTP addresses of nodes, 1 to 32: `http://host:7301`, `https://…` or `host:port`. All nodes of
   * the cluster are best: none is found by itself.
   */
  readonly endpoints: readonly string[];
  /**
   * Who the work is for, 1 to 256 bytes of UTF-8: the name that retry budgets know. A request may
   * name another one.
   */
  readonly client: string;
  /**
   * Within how many milliseconds a call answers, 1 to 3,600,000. Default 1000. Where nobody has
   * answered by then the client decides by itself.
   */
  readonly deadlineMs?: number;
  /**
   * What to do, while nobody answers, with a limit of which no node has said anything yet. Default
   * open.
   */
  readonly fallback?: "open" | "closed";
  /** This client's part, 0 to 1, of limits whose rule is a share and names no part. Default 0: nothing. */
  readonly share?: number;
  /**
   * While nobody answers one call asks all the same each so many milliseconds, 10 to 60,000; the
   * others are decided at once. Default 250.
   */
  readonly probeEveryMs?: number;
  /** For https: `ca`, `cert`, `key` and the like. Default: what Node trusts. */
  readonly tls?: SecureContextOptions;
  /** Sent with each request, as a proxy in front of the nodes may want them. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Gets one warning when the client begins to decide by itself, and one when that is over. Default:
   * console.
   */
  readonly logger?: Logger;
}

export interface AcquireOptions {
  readonly client?: string;
  /** The class, such as `live` or `batch`. Absent: the first of each limit. */
  readonly priority?: string;
  /** Retries made for this piece of work, 0 first. Default: that of the retry around the caller, else 0. */
  readonly attempt?: number;
  /**
   * The lease will be settled, renewed or released, and asking again after a lost answer is charged
   * once. Without it such a repetition may be charged twice. Default true.
   */
  readonly track?: boolean;
  /** For how long to wait in the authority's queue, up to an hour. The answer has so much more time. */
  readonly maxWaitMs?: number;
  /** 32 lower-case hex digits, new for each piece of work. Absent: drawn. */
  readonly leaseId?: string;
  /** What the work is: every limit that they fit is charged, as amounts say by dimension. */
  readonly attributes?: Readonly<Record<string, string>>;
  readonly amounts?: Readonly<Record<string, number>>;
  /** Instead of the client's. */
  readonly deadlineMs?: number;
}

/** A piece of work that goes ahead. */
export interface Work {
  readonly lease: Lease;
  readonly decision: Decision;
  /**
   * Says what was really used so far by dimension, of all its charges; the last word counts. A
   * dimension that is never named counts as used in full.
   */
  used(dimensions: Readonly<Record<string, number>>): void;
  /** Nothing was done after all: the lease is given back whole. */
  unused(): void;
}

/** Asks the nodes of one cluster over HTTP. */
export class Client {
  readonly #name: string;
  readonly #deadline: number;
  readonly #probeEvery: number;
  readonly #logger: Logger;
  readonly #transport: Transport;
  readonly #asker: Asker;
  readonly #machine: Machine;
  #nextProbe = 0;
  #probing = false;
  #closed = false;
  #session = newId();
  #reporting: Promise<void> | undefined;
  #nextReport = 0;

  constructor(options: ClientOptions) {
    const { endpoints, client, deadlineMs = 1000, fallback = "open", share = 0, probeEveryMs = 250 } = options;
    if (!Array.isArray(endpoints) || endpoints.length < 1 || endpoints.length > ENDPOINTS_MAX) {
      throw check.bad("endpoints", `${check.shown(endpoints)}: want a list of 1 to ${ENDPOINTS_MAX}`);
    }
    check.text("client", client, 256, 1);
    check.range("deadlineMs", deadlineMs, 1, 3_600_000, " ms");
    check.range("probeEveryMs", probeEveryMs, 10, 60_000, " ms");
    if (fallback !== "open" && fallback !== "closed") {
      throw check.bad("fallback", `${check.shown(fallback)} is neither open nor closed`);
    }
    check.range("share", share, 0, 1, "");
    this.#name = client;
    this.#deadline = deadlineMs;
    this.#probeEvery = probeEveryMs;
    this.#logger = options.logger ?? console;
    this.#transport = new Transport(options.tls, { ...options.headers });
    this.#asker = new Asker(endpoints.map((e, i) => endpoint(e, `endpoints[${i}]`)), this.#transport);
    this.#machine = new Machine(fallback, share);
  }

  /** The client decides by itself, since nobody answers. */
  get away(): boolean {
    return this.#machine.awaySince !== undefined;
  }

  /**
   * Asks for every charge or none, and has an answer within the deadline and maxWaitMs together.
   * It rejects with RequestError where the request is bad, its limit unknown, or it may not ask.
   */
  async acquire(charges: Charge | readonly Charge[], options: AcquireOptions = {}): Promise<Decision> {
    const given: readonly Charge[] = Array.isArray(charges) ? charges : [charges];
    const { priority = "", attempt = currentAttempt(), track = true, maxWaitMs = 0 } = options;
    const attributes = { ...options.attributes };
    const amounts = { ...options.amounts };
    check.charges(given);
    check.attributes(attributes, amounts);
    const described = Object.keys(attributes).length > 0;
    if (given.length === 0 && !described) throw check.bad("charges", "missing, and there are no attributes");
    check.text("client", options.client ?? "", 256);
    check.priority(priority);
    check.whole("attempt", attempt, 0, 2 ** 32 - 1);
    check.range("maxWaitMs", maxWaitMs, 0, 3_600_000, " ms");
    if (options.leaseId !== undefined && options.leaseId !== "") check.leaseId(options.leaseId);
    const patience = this.#patience(options.deadlineMs);
    if (this.#closed) throw new Closed("the client was closed");

    const client = options.client || this.#name;
    const leaseId = options.leaseId || newId();
    const listed = given.map(full);
    const work = JSON.stringify([client, priority, listed, sorted(attributes), sorted(amounts)]);
    const known = (): readonly Charged[] | undefined => (described ? this.#machine.work(work) : listed);
    const locally = (): Decision => {
      const now = performance.now();
      const charged = known();
      const lease = { id: leaseId, charges: charged ?? listed, ends: now + LOCAL_LIFE_MS, tracked: track, local: true };
      return this.#machine.decide(now, { client, class: priority, attempt }, charged, lease);
    };

    const asked = performance.now();
    if (!this.#mayAsk(asked)) return locally();
    const revision = this.#machine.known(client, (known() ?? []).map((c) => c.limit));
    let news: unknown;
    let decision: Decision;
    try {
      decision = await this.#ask("acquire", {
        lease_id: leaseId, client, class: priority, attempt, track, charges: wire.charges(listed), attributes,
        amounts: Object.fromEntries(Object.entries(amounts).map(([name, n]) => [name, String(n)])),
        ...(revision !== undefined ? { known_revision: String(revision) } : {}),
      }, asked + patience + maxWaitMs, (answer) => {
        news = (answer as { fallbacks?: unknown }).fallbacks;
        return wire.decision(answer, leaseId, asked);
      }, asked + maxWaitMs);
    } catch (err) {
      if (err instanceof Unanswered) return locally();
      throw err;
    }
    this.#machine.learn(client, news);
    if (decision.granted && !decision.repeated) this.#machine.record(asked, client, attempt);
    if (decision.lease && described) this.#machine.noteWork(work, decision.lease.charges);
    return decision;
  }

  /**
   * Says what a tracked lease really used, and ends it; with progress it only books an excess so
   * far. A charge that nobody names counts as used in full. It may be repeated. It rejects with
   * Unanswered where nobody answered in time: ask again, or let the lease end, charged in full.
   */
  async settle(
    lease: Lease, used: readonly Usage[] = [], options: { progress?: boolean; deadlineMs?: number } = {},
  ): Promise<Settlement> {
    check.usage(used);
    const progress = options.progress ?? false;
    if (lease.local) return local(progress ? "OPEN" : "SETTLED");
    return this.#operate("settle", lease, { used: wire.usage(used), progress }, options.deadlineMs);
  }

  /** Gives a tracked lease back unspent. It may be repeated. It rejects as settle does. */
  async release(lease: Lease, options: { deadlineMs?: number } = {}): Promise<Settlement> {
    if (lease.local) return local("RELEASED");
    return this.#operate("release", lease, {}, options.deadlineMs);
  }

  /**
   * Prolongs the time to settle a tracked lease, never the time to spend it, to 1 to 86,400,000 ms
   * from now. sequence is higher with each renewal; a repetition has the same. It rejects as settle does.
   */
  async renew(
    lease: Lease, ttlMs: number, sequence: number, used: readonly Usage[] = [], options: { deadlineMs?: number } = {},
  ): Promise<Settlement> {
    check.usage(used);
    check.range("ttlMs", ttlMs, 1, 86_400_000, " ms");
    check.whole("sequence", sequence, 1, Number.MAX_SAFE_INTEGER);
    if (lease.local) return { ...local("OPEN"), ends: performance.now() + ttlMs };
    const body = { ttl: wire.seconds(ttlMs), sequence: String(sequence), used: wire.usage(used) };
    return this.#operate("renew", lease, body, options.deadlineMs);
  }

  /**
   * Does a piece of work if it may go ahead, and rejects with Denied if not. What it reports with
   * used is settled at the end, in any case; unused has the lease released instead. Where that is
   * not answered the lease ends by itself, charged in full, and the work's own outcome counts.
   */
  async limit<T>(
    charges: Charge | readonly Charge[], work: (w: Work) => Promise<T>, options: AcquireOptions = {},
  ): Promise<T> {
    const decision = await this.acquire(charges, options);
    if (!decision.granted || !decision.lease) throw new Denied(decision);
    const { lease } = decision;
    const usage = new Map<string, number>();
    let whole = false;
    try {
      return await work({
        lease,
        decision,
        used: (dimensions) => Object.entries(dimensions).forEach(([name, n]) => usage.set(name, n)),
        unused: () => void (whole = true),
      });
    } finally {
      if (lease.tracked) {
        const used = [...usage].map(([dimension, n]) => ({ dimension, used: n }));
        await (whole ? this.release(lease) : this.settle(lease, used)).catch(() => undefined);
      }
    }
  }

  /** Waits for a report that is under way, and closes all connections. It may be called twice. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#reporting;
    this.#transport.close();
  }

  #patience(deadlineMs: number | undefined): number {
    if (deadlineMs === undefined) return this.#deadline;
    check.range("deadlineMs", deadlineMs, 1, 3_600_000, " ms");
    return deadlineMs;
  }

  async #operate(call: string, lease: Lease, body: object, deadlineMs?: number): Promise<Settlement> {
    const patience = this.#patience(deadlineMs);
    if (this.#closed) throw new Closed("the client was closed");
    const asked = performance.now();
    if (!this.#mayAsk(asked)) throw new Unanswered(`${call}: nobody has answered of late`);
    return this.#ask(call, { ...body, lease_id: lease.id }, asked + patience, (a) => wire.settlement(a, asked));
  }

  /** Whether this call asks a node. */
  #mayAsk(now: number): boolean {
    if (!this.away) return true;
    if (this.#probing || now < this.#nextProbe) return false;
    this.#probing = true;
    return true;
  }

  async #ask<T>(
    call: string, body: object, deadline: number, read: (answer: unknown) => T, waits = 0,
  ): Promise<T> {
    try {
      const result = await this.#asker.ask(call, body, deadline, read, waits);
      this.#answered();
      return result;
    } catch (err) {
      if (err instanceof RequestError) this.#answered();
      if (!(err instanceof Silence)) throw err;
      this.#missed(err);
      throw new Unanswered(`${call}: ${err.message}`);
    } finally {
      this.#probing = false;
    }
  }

  #answered(): void {
    const now = performance.now();
    this.#nextProbe = now;
    const lasted = this.#machine.answered(now);
    if (lasted !== undefined) {
      const { admitted, refused } = this.#machine;
      this.#logger.warn(`quorlease: nodes answer again after ${(lasted / 1000).toFixed(1)} s: ` +
        `${admitted} requests were admitted and ${refused} refused by this client alone`);
    }
    this.#report(now);
  }

  #missed(silence: Silence): void {
    const now = performance.now();
    this.#nextProbe = now + this.#probeEvery;
    if (this.#machine.missed(now, silence.certain)) {
      this.#logger.warn(`quorlease: no node answers: limits are decided by this client alone (${silence.message})`);
    }
  }

  /** Tells the authority some of what was admitted alone, in the background. */
  #report(now: number): void {
    if (this.#reporting || this.away || this.#closed || now < this.#nextReport) return;
    const due = [...this.#machine.accounts.values()].filter((a) => a.tokens > a.booked).slice(0, REPORT_MAX);
    if (due.length === 0) return;
    const counts = due.map((a) => a.tokens);
    const admitted = due.map(({ limit, key, dimension, class: kind, tokens }) => (
      { limit, key, dimension, class: kind, tokens: String(tokens) }));
    this.#nextReport = now + 1000;
    const body = { client: this.#name, session_id: this.#session, admitted };
    this.#reporting = this.#asker.ask("report", body, now + REPORT_WITHIN_MS, () => true).then(() => {
      this.#nextReport = 0;
      due.forEach((a, i) => (a.booked = counts[i] ?? 0));
      const { accounts } = this.#machine;
      if ([...accounts.values()].every((a) => a.tokens <= a.booked)) {
        // All is booked: whoever counts on for a day would be booked twice.
        accounts.clear();
        this.#session = newId();
      }
    }, () => undefined).finally(() => (this.#reporting = undefined));
  }
}

function newId(): string {
  return randomBytes(16).toString("hex");
}

function full(c: Charge): Charged {
  return { limit: c.limit, key: c.key ?? "", dimension: c.dimension, amount: c.amount ?? 1 };
}

function sorted(of: object): [string, unknown][] {
  return Object.entries(of).sort(([a], [b]) => (a < b ? -1 : 1));
}

function local(state: string): Settlement {
  return { state, charges: [], repeated: false, local: true };
}
