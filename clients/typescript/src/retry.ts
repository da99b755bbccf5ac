// Asking again as often as one may and as late as one is told.

import { AsyncLocalStorage } from "node:async_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { bad, range, whole } from "./check.js";
import { Denied, retryAfterMs } from "./types.js";

/**
 * The header that says how many retries were made of a request, 0 first: by it gateways and retry
 * budgets tell a retry.
 */
export const RETRY_HEADER = "x-retry-attempt";

const statuses = new Set([429, 503, 529]);
const MARKER_MAX = 1000;
const WAIT_MAX_MS = 24 * 3_600_000;
const SPREAD_MS = 2000;

const attempts = new AsyncLocalStorage<number>();

/** Retries made by the retry around the caller, 0 outside one. */
export function currentAttempt(): number {
  return attempts.getStore() ?? 0;
}

export interface RetryOptions {
  /** How often it is called at most, the first time counted, 1 to 10. Default 3. */
  readonly attempts?: number;
  /** The longest wait that is asked for and waited, up to an hour. Default a minute. */
  readonly waitMaxMs?: number;
  /** How long all of it may take: no wait begins that would end later. */
  readonly withinMs?: number;
  /** Headers of the request. A marker that is among them is counted on. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Ends a wait. */
  readonly signal?: AbortSignal;
}

/** What a try is given: the headers that it sends, with the marker, and its number. */
export interface Try {
  readonly headers: Record<string, string>;
  readonly attempt: number;
}

/**
 * Calls a function that sends a request, again where the answer says "not now".
 *
 * What it returns or throws is looked at: a status (`status`, also of an error's `response`) of 429,
 * 503 or 529, or the header `x-should-retry: true`, is asked again after `retry-after-ms` or
 * `Retry-After`, and up to two seconds more at random; without them after one second, doubling to a
 * minute, of which the second half is drawn. `x-should-retry: false` is not asked again, and neither
 * is what failed without an answer: nobody knows whether it was done. Denied is asked again after
 * its own hint. The last answer, or error, is the caller's. An acquire inside has the same attempt.
 */
export async function retry<T>(send: (t: Try) => Promise<T>, options: RetryOptions = {}): Promise<T> {
  const { attempts: most = 3, waitMaxMs = 60_000, withinMs = Infinity, headers = {}, signal } = options;
  whole("attempts", most, 1, 10);
  range("waitMaxMs", waitMaxMs, 0, 3_600_000, " ms");
  if (typeof withinMs !== "number" || !(withinMs >= 0)) throw bad("withinMs", `${withinMs} is below 0`);
  const ends = performance.now() + withinMs;
  const given = Object.fromEntries(Object.entries(headers).filter(([name]) => name.toLowerCase() !== RETRY_HEADER));
  const before = marked(headers);
  for (let n = 0; ; n++) {
    const attempt = before + n;
    const outcome = await attempts.run(attempt, async () => {
      try {
        return { value: await send({ headers: { ...given, [RETRY_HEADER]: String(attempt) }, attempt }) };
      } catch (error) {
        return { error };
      }
    });
    const { asked, wait } = judge("value" in outcome ? outcome.value : outcome.error, n);
    const last = n + 1 >= most || wait === undefined || asked > waitMaxMs || performance.now() + wait > ends;
    if (last || signal?.aborted) {
      if ("value" in outcome) return outcome.value as T;
      throw outcome.error;
    }
    if ("value" in outcome) await discard(outcome.value);
    await sleep(wait, undefined, signal ? { signal } : {});
  }
}

/** fetch, by the rules of retry. A body that is a stream is sent once: it can't be sent again. */
export function retryingFetch(
  input: string | URL, init: RequestInit = {}, options: Omit<RetryOptions, "headers" | "signal"> = {},
): Promise<Response> {
  const headers = Object.fromEntries(new Headers(init.headers).entries());
  const once = init.body instanceof ReadableStream ? { attempts: 1 } : {};
  const signal = init.signal ? { signal: init.signal } : {};
  return retry((t) => fetch(input, { ...init, headers: t.headers }), { ...options, ...once, ...signal, headers });
}

/** Lets go of an answer that nobody reads, so that its connection can be used again. */
async function discard(value: unknown): Promise<void> {
  const body = (value as { body?: { cancel?: unknown; locked?: unknown } } | null)?.body;
  if (body instanceof ReadableStream && !body.locked) await body.cancel().catch(() => undefined);
}

function marked(headers: Readonly<Record<string, string>>): number {
  const text = header(headers, RETRY_HEADER) ?? "";
  return /^\d{1,4}$/.test(text) && Number(text) <= MARKER_MAX ? Number(text) : 0;
}

function header(headers: unknown, name: string): string | undefined {
  if (headers && typeof (headers as Headers).get === "function") return (headers as Headers).get(name)?.trim();
  for (const [key, value] of Object.entries(headers ?? {})) {
    if (key.toLowerCase() === name) return String(value).trim();
  }
  return undefined;
}

/** What an outcome asks to wait, and what to wait; undefined where asking again does not help. */
function judge(outcome: unknown, n: number): { asked: number; wait: number | undefined } {
  if (outcome instanceof Denied) {
    const wait = retryAfterMs(outcome.decision);
    return { asked: wait ?? 0, wait };
  }
  const { status, headers } = answer(outcome);
  const should = header(headers, "x-should-retry");
  if (should === "false" || (should !== "true" && !statuses.has(status))) return { asked: 0, wait: undefined };
  const hint = hinted(headers);
  if (hint !== undefined) return { asked: hint, wait: hint + Math.random() * SPREAD_MS };
  const longest = Math.min(60_000, 1000 * 2 ** n);
  const wait = longest / 2 + (Math.random() * longest) / 2;
  return { asked: wait, wait };
}

function answer(outcome: unknown): { status: number; headers: unknown } {
  const one = outcome as { status?: unknown; headers?: unknown; response?: unknown } | null | undefined;
  for (const at of [one, one?.response as typeof one]) {
    if (typeof at?.status === "number") return { status: at.status, headers: at.headers };
  }
  return { status: 0, headers: undefined };
}

function hinted(headers: unknown): number | undefined {
  for (const [name, unit] of [["retry-after-ms", 1], ["x-ms-retry-after-ms", 1], ["retry-after", 1000]] as const) {
    const text = header(headers, name);
    if (!text || text.length > 64) continue;
    let value = /^[-+0-9.eE]+$/.test(text) ? Number(text) * unit : NaN;
    if (Number.isNaN(value) && name === "retry-after") value = Math.max(0, Date.parse(text) - Date.now());
    if (value >= 0 && Number.isFinite(value)) return Math.min(value, WAIT_MAX_MS);
  }
  return undefined;
}
