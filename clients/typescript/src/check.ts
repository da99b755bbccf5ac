// The bounds of the protocol, checked before anybody is asked: while the client decides alone it
// has to refuse the same that a node refuses.

import { AMOUNT_MAX, type Charge, RequestError, type Usage } from "./types.js";

const LIMIT = /^[a-z0-9][a-z0-9_.-]{0,62}$/;
const DIMENSION = /^[a-z][a-z0-9_]{0,62}$/;
const LEASE = /^[0-9a-f]{32}$/;

export function bad(field: string, problem: string): RequestError {
  return new RequestError("BAD_FIELD", `${field}: ${problem}`);
}

export function shown(value: unknown): string {
  const text = typeof value === "string" ? JSON.stringify(value) : String(value);
  return text.length <= 80 ? text : text.slice(0, 79) + "…";
}

function named(field: string, value: unknown, pattern: RegExp): void {
  if (typeof value !== "string" || !pattern.test(value)) throw bad(field, `${shown(value)} is not ${pattern.source}`);
}

export function text(field: string, value: unknown, most: number, least = 0): void {
  const problem = `${shown(value)} is not ${least} to ${most} bytes of UTF-8 without control characters`;
  if (typeof value !== "string" || /\p{Cc}|\p{Cs}/u.test(value)) throw bad(field, problem);
  const size = Buffer.byteLength(value);
  if (size < least || size > most) throw bad(field, problem);
}

function amount(field: string, value: unknown, least: number): void {
  if (typeof value !== "number" || !Number.isInteger(value) || value < least || value > AMOUNT_MAX) {
    throw bad(field, `${shown(value)} is out of range ${least}..${AMOUNT_MAX}`);
  }
}

export function range(field: string, value: unknown, least: number, most: number, unit: string): void {
  if (typeof value !== "number" || !(value >= least && value <= most)) {
    throw bad(field, `${shown(value)} is out of range ${least}..${most}${unit}`);
  }
}

export function whole(field: string, value: unknown, least: number, most: number): void {
  range(field, value, least, most, "");
  if (!Number.isInteger(value)) throw bad(field, `${shown(value)} is no whole number`);
}

export function leaseId(value: unknown): void {
  if (typeof value !== "string" || !LEASE.test(value)) {
    throw bad("leaseId", `${shown(value)} is not 32 lower-case hex digits`);
  }
}

export function charges(given: readonly Charge[]): void {
  if (given.length > 16) throw bad("charges", `${given.length}, more than 16`);
  const seen = new Set<string>();
  given.forEach((c, i) => {
    named(`charges[${i}].limit`, c.limit, LIMIT);
    text(`charges[${i}].key`, c.key ?? "", 512);
    named(`charges[${i}].dimension`, c.dimension, DIMENSION);
    amount(`charges[${i}].amount`, c.amount ?? 1, 1);
    const at = JSON.stringify([c.limit, c.key ?? "", c.dimension]);
    if (seen.has(at)) throw bad(`charges[${i}]`, "the same limit, key and dimension twice");
    seen.add(at);
  });
}

export function attributes(given: Record<string, string>, amounts: Record<string, number>): void {
  const names = Object.entries(given);
  if (names.length > 32) throw bad("attributes", `${names.length}, more than 32`);
  for (const [name, value] of names) {
    named("attributes", name, DIMENSION);
    text(`attributes[${name}]`, value, 256, 1);
  }
  const tokens = Object.entries(amounts);
  if (tokens.length > 16) throw bad("amounts", `${tokens.length}, more than 16`);
  for (const [name, value] of tokens) {
    named("amounts", name, DIMENSION);
    amount(`amounts[${name}]`, value, 1);
  }
}

export function usage(given: readonly Usage[]): void {
  if (given.length > 64) throw bad("used", `${given.length}, more than 64`);
  given.forEach((u, i) => {
    named(`used[${i}].dimension`, u.dimension, DIMENSION);
    amount(`used[${i}].used`, u.used, 0);
    if (u.limit) named(`used[${i}].limit`, u.limit, LIMIT);
    text(`used[${i}].key`, u.key ?? "", 512);
  });
}

export function priority(value: string): void {
  if (value !== "") named("priority", value, DIMENSION);
}
