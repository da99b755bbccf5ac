/** The most tokens that one charge may ask for, 2**53: the largest number that a double has exactly. */
export const AMOUNT_MAX = 2 ** 53;

/** Asks for tokens of one dimension of one limit. */
export interface Charge {
  readonly limit: string;
  readonly dimension: string;
  /** 1 to 2**53, a whole number. Default 1. */
  readonly amount?: number;
  /** The instance, up to 512 bytes of UTF-8. Absent for a limit without keys. */
  readonly key?: string;
}

/** What was charged: everything is said. */
export interface Charged {
  readonly limit: string;
  readonly dimension: string;
  readonly amount: number;
  readonly key: string;
}

/** What was really used of a dimension. Without limit and key it speaks of every charge of it. */
export interface Usage {
  readonly dimension: string;
  /** 0 to 2**53 tokens. */
  readonly used: number;
  readonly limit?: string;
  readonly key?: string;
}

/** Why not, and when to come back. */
export interface Denial {
  /**
   * One of the authority's (`RATE`, `RETRY_BUDGET` …), or, decided without it, `LOCAL_CLOSED` or
   * `LOCAL_SHARE` beside `RATE`, `RETRY_BUDGET` and `ATTEMPTS`.
   */
  readonly reason: string;
  readonly limit: string;
  readonly key: string;
  readonly dimension: string;
  /** The hint as it was given, in milliseconds. Absent with never. */
  readonly retryAfterMs?: number;
  /** No waiting helps. */
  readonly never: boolean;
  /** When a retry budget's window would let the client through by itself, in milliseconds. */
  readonly freesInMs?: number;
}

/** Level minus debt of one charged bucket after the decision, rounded down. */
export interface Remaining {
  readonly limit: string;
  readonly key: string;
  readonly dimension: string;
  readonly tokens: number;
}

/** The right to spend what was charged. */
export interface Lease {
  readonly id: string;
  readonly charges: readonly Charged[];
  /**
   * When the right to spend ends, by `performance.now()`: the life, less a thousandth, counted
   * from before the request was first sent.
   */
  readonly ends: number;
  /** It may be settled, renewed and released. */
  readonly tracked: boolean;
  /** This client granted it by itself. Settling it asks nobody. */
  readonly local: boolean;
}

/** The answer to an acquire. */
export interface Decision {
  readonly granted: boolean;
  /** `local`: decided here, because nobody answered. */
  readonly source: "consensus" | "escrow" | "node" | "local";
  /** Set where granted. */
  readonly lease?: Lease;
  /** Why not: the longest wait first, never before all. */
  readonly denials: readonly Denial[];
  /** What limits that do not enforce would have refused. */
  readonly warnings: readonly Denial[];
  readonly remaining: readonly Remaining[];
  /** The same lease id was answered before. */
  readonly repeated: boolean;
  /** How it waited, or would have to: times in milliseconds. */
  readonly queue?: { readonly position: number; readonly etaMs: number; readonly waitedMs: number };
}

/** What became of one charge. */
export interface Settled extends Charged {
  readonly used: number;
  readonly refunded: number;
  readonly excess: number;
  readonly writtenOff: number;
}

/** The answer to a settle, a release or a renewal. */
export interface Settlement {
  readonly state: "OPEN" | "SETTLED" | "RELEASED" | "EXPIRED" | (string & {});
  readonly charges: readonly Settled[];
  /** Until when it has to be settled, by `performance.now()`. Absent where it has ended. */
  readonly ends?: number;
  readonly repeated: boolean;
  readonly local: boolean;
}

/** The base of all errors of this package. */
export class QuorleaseError extends Error {
  override name = "QuorleaseError";
}

/** A node, or the check before it is asked, has refused the request: nothing happened. */
export class RequestError extends QuorleaseError {
  override name = "RequestError";
  constructor(
    /** That of the table of errors: `BAD_FIELD`, `LIMIT_NOT_FOUND`, `UNAUTHENTICATED` … */
    readonly reason: string,
    message: string,
    /** The HTTP status, 0 where nobody was asked. */
    readonly status = 0,
  ) {
    super(`${reason}: ${message}`);
  }
}

/**
 * No node has answered in time. What was asked may have happened, or may still happen. An acquire
 * never throws it: it is decided locally instead.
 */
export class Unanswered extends QuorleaseError {
  override name = "Unanswered";
}

/** The client was closed. */
export class Closed extends QuorleaseError {
  override name = "Closed";
}

/** A piece of work was denied what it asks for; `decision` says why. */
export class Denied extends QuorleaseError {
  override name = "Denied";
  constructor(readonly decision: Decision) {
    super("denied: " + decision.denials.map(words).join(", "));
  }
}

function words(d: Denial): string {
  const when = d.never ? ", never" : `, again in ${((d.retryAfterMs ?? 0) / 1000).toFixed(3)} s`;
  return d.reason + (d.limit ? ` by ${d.limit}` : "") + when;
}

/**
 * How long to wait before asking again, in milliseconds; undefined where that never helps. It is
 * the longest hint and up to a tenth more, drawn at random, so that clients that were told the same
 * time do not all come back in one instant.
 */
export function retryAfterMs(decision: Decision): number | undefined {
  if (decision.denials.some((d) => d.never)) return undefined;
  const wait = Math.max(0, ...decision.denials.map((d) => d.retryAfterMs ?? 0));
  return wait + (Math.random() * wait) / 10;
}
