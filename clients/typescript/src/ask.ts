// Asks nodes one after another until one answers.

import { setTimeout as sleep } from "node:timers/promises";
import { type Answer, NoAnswer, type Transport } from "./transport.js";
import { RequestError } from "./types.js";
import { Nonsense, seconds } from "./wire.js";

/** Between two rounds while nodes elect a leader or have too much to do, in milliseconds. */
const PAUSE_MS = 50;

// Statuses that are an answer whoever gives them: to ask another node would give the same.
const final = new Set([400, 401, 403, 404, 405, 409, 410, 413, 415, 421]);
const later = new Set(["NO_LEADER", "OVERLOADED", "DISK_LOW"]);
const again = new Set(["SHUTTING_DOWN", "OUTCOME_UNKNOWN", "INTERNAL", "CANCELLED", ""]);

/** Nobody has answered. certain: nobody can be reached, or there is no majority. */
export class Silence extends Error {
  constructor(readonly certain: boolean, last: string) {
    super(last);
  }
}

/** A node can't answer now. kind: it sees no majority, it can later, or another one may. */
class Refused extends Error {
  constructor(readonly kind: "minority" | "later" | "again", text: string) {
    super(text);
  }
}

/** Knows the endpoints, and which of them answered last. */
export class Asker {
  #first = 0;

  constructor(private readonly endpoints: readonly URL[], private readonly transport: Transport) {}

  /**
   * Asks until a node answers, every node is away, or the deadline has passed. All that is sent has
   * the effect of one where it is repeated, or, untracked, may be debited twice: less is admitted
   * then, never more. Until waits a node may keep the question in its queue: what is left of that is
   * said to each, and is not what is divided between them. Throws RequestError for an error that is
   * an answer, and Silence.
   */
  async ask<T>(
    call: string, request: object, deadline: number, read: (answer: unknown) => T, waits = 0,
  ): Promise<T> {
    let last = "the deadline has passed";
    for (;;) {
      let patient = false;
      let certain = false;
      const first = this.#first;
      for (let n = 0; n < this.endpoints.length; n++) {
        const at = (first + n) % this.endpoints.length;
        const left = deadline - performance.now();
        if (left <= 0) throw new Silence(false, last);
        // One that hangs leaves enough for the next.
        const queued = Math.min(left, Math.max(0, waits - performance.now()));
        const within = n + 1 === this.endpoints.length ? left : queued + (left - queued) / 2;
        const body = Buffer.from(JSON.stringify(queued > 0 ? { ...request, max_wait: seconds(queued) } : request));
        try {
          const result = await this.#one(at, call, body, within, read);
          this.#first = at;
          return result;
        } catch (err) {
          if (!(err instanceof NoAnswer || err instanceof Refused || err instanceof Nonsense)) throw err;
          last = err.message;
          certain ||= err instanceof NoAnswer ? err.kind !== "late" : err instanceof Refused && err.kind === "minority";
          patient ||= err instanceof Refused && err.kind === "later";
        }
      }
      if (!patient) throw new Silence(certain && performance.now() < deadline, last);
      await sleep(Math.max(0, Math.min(PAUSE_MS, deadline - performance.now())));
    }
  }

  async #one<T>(at: number, call: string, body: Buffer, within: number, read: (answer: unknown) => T): Promise<T> {
    const endpoint = this.endpoints[at] as URL;
    const answer = await this.transport.post(endpoint, `/v1/admission:${call}`, body, within);
    const parsed = parse(answer);
    if (answer.status === 200 && typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) {
      return read(parsed);
    }
    const { reason, message } = problem(parsed);
    if (reason === "NO_QUORUM") throw new Refused("minority", `${endpoint.host}: ${reason}`);
    if (later.has(reason)) throw new Refused("later", `${endpoint.host}: ${reason}`);
    if (final.has(answer.status) || (answer.status === 429 && !again.has(reason))) {
      const words = message || `${endpoint.host} answers ${answer.status}`;
      throw new RequestError(reason || `HTTP_${answer.status}`, words, answer.status);
    }
    throw new Refused("again", `${endpoint.host}: ${answer.status} ${reason}`);
  }
}

function parse(answer: Answer): unknown {
  try {
    return JSON.parse(answer.body);
  } catch {
    return undefined;
  }
}

function problem(parsed: unknown): { reason: string; message: string } {
  const { reason, message } = (parsed ?? {}) as { reason?: unknown; message?: unknown };
  return {
    reason: typeof reason === "string" ? reason.slice(0, 64) : "",
    message: typeof message === "string" ? message.slice(0, 500) : "",
  };
}
