// Requests as JSON, and answers read from it.

import { duration } from "./fallback.js";
import type { Charged, Decision, Denial, Lease, Settlement, Usage } from "./types.js";

/** A node has answered something that is no answer to what it was asked. */
export class Nonsense extends Error {}

// What is read here is JSON of somebody else: every member is looked at before it is used.
type Json = any;

/** A duration of so many milliseconds, to the microsecond. */
export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(6)}s`;
}

export function charges(given: readonly Charged[]): Json {
  return given.map((c) => ({ limit: c.limit, key: c.key, dimension: c.dimension, amount: String(c.amount) }));
}

export function usage(given: readonly Usage[]): Json {
  return given.map((u) => (
    { limit: u.limit ?? "", key: u.key ?? "", dimension: u.dimension, used: String(u.used) }));
}

/** Reads the answer to an acquire that was first sent at asked. */
export function decision(answer: Json, leaseId: string, asked: number): Decision {
  return whole(() => {
    const denials = list(answer.denials).map(denial);
    const granted = answer.decision === "GRANTED";
    if (!granted && (answer.decision !== "DENIED" || denials.length === 0)) throw new Nonsense("it is no decision");
    const read: Decision = {
      granted,
      source: answer.source === "CONSENSUS" ? "consensus" : answer.source === "ESCROW" ? "escrow" : "node",
      denials,
      warnings: list(answer.warnings).map(denial),
      remaining: list(answer.remaining).map((r) => ({ ...place(r), tokens: number(r.tokens) })),
      repeated: answer.repeated_request === true,
      ...(granted ? { lease: lease(answer.lease, leaseId, asked) } : {}),
      ...(answer.queue ? { queue: queue(answer.queue) } : {}),
    };
    return read;
  });
}

function lease(given: Json, leaseId: string, asked: number): Lease {
  if (given.id !== leaseId) throw new Nonsense("it is of another lease");
  const charged: Charged[] = list(given.charges).map((c) => ({ ...place(c), amount: number(c.amount) }));
  const ends = asked + duration(given.ttl) * 0.999;
  return { id: leaseId, charges: charged, ends, tracked: given.tracked === true, local: false };
}

function queue(q: Json): NonNullable<Decision["queue"]> {
  return { position: number(q.position ?? 0), etaMs: duration(q.eta), waitedMs: duration(q.waited) };
}

function denial(d: Json): Denial {
  if (typeof d.reason !== "string") throw new Nonsense("a denial has no reason");
  const never = d.never === true;
  return {
    reason: d.reason,
    limit: text(d.limit), key: text(d.key), dimension: text(d.dimension),
    never,
    ...(never || d.retry_after === undefined ? {} : { retryAfterMs: duration(d.retry_after) }),
    ...(d.frees_in === undefined ? {} : { freesInMs: duration(d.frees_in) }),
  };
}

/** Reads the answer to a settle, a release or a renewal. */
export function settlement(answer: Json, asked: number): Settlement {
  return whole(() => {
    if (typeof answer.state !== "string") throw new Nonsense("it has no state");
    const ttl = duration(answer.ttl);
    return {
      state: answer.state,
      charges: list(answer.settlements).map((s) => ({
        ...place(s), amount: number(s.amount ?? 0), used: number(s.used ?? 0), refunded: number(s.refunded ?? 0),
        excess: number(s.excess ?? 0), writtenOff: number(s.written_off ?? 0),
      })),
      ...(ttl > 0 ? { ends: asked + ttl * 0.999 } : {}),
      repeated: answer.repeated_request === true,
      local: false,
    };
  });
}

function whole<T>(read: () => T): T {
  try {
    return read();
  } catch (err) {
    throw err instanceof Nonsense ? err : new Nonsense(String(err));
  }
}

function list(value: Json): Json[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw new Nonsense("it is no list");
  return value;
}

function place(of: Json): { limit: string; key: string; dimension: string } {
  return { limit: text(of.limit), key: text(of.key), dimension: text(of.dimension) };
}

function text(value: Json): string {
  if (value === undefined) return "";
  if (typeof value !== "string") throw new Nonsense("it is no text");
  return value;
}

function number(value: Json): number {
  if (!/^-?\d+$/.test(String(value))) throw new Nonsense("it is no number");
  return Number(value);
}
