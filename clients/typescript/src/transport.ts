// HTTP/1.1 to nodes: pooled connections, one deadline over all of a call.

import * as http from "node:http";
import * as https from "node:https";
import type { SecureContextOptions } from "node:tls";
import { bad, shown } from "./check.js";

/** The longest answer that is read, in bytes. */
const BODY_MAX = 1 << 20;
/** How many connections are kept and how many are open at a time, for each endpoint. */
const IDLE_MAX = 8;
const SOCKETS_MAX = 256;

/**
 * Why there was no answer. unsent: nobody was there to ask, so it certainly did not happen. lost:
 * there was no whole answer. late: the deadline has passed.
 */
export class NoAnswer extends Error {
  constructor(readonly kind: "unsent" | "lost" | "late", message: string) {
    super(message);
  }
}

export interface Answer {
  status: number;
  body: string;
}

export function endpoint(given: string, field: string): URL {
  let url: URL;
  try {
    url = new URL(given.includes("://") ? given : `http://${given}`);
  } catch {
    throw bad(field, `${shown(given)} is not http://host:port`);
  }
  const bare = url.pathname === "/" && !url.search && !url.hash && !url.username && !url.password;
  if ((url.protocol !== "http:" && url.protocol !== "https:") || !bare) {
    throw bad(field, `${shown(given)} is not http://host:port`);
  }
  return url;
}

/** Sends requests. Idle connections do not keep a process alive. */
export class Transport {
  readonly #plain = new http.Agent({ keepAlive: true, maxFreeSockets: IDLE_MAX, maxSockets: SOCKETS_MAX });
  readonly #secure: https.Agent;
  readonly #headers: Record<string, string>;

  constructor(tls: SecureContextOptions | undefined, headers: Record<string, string>) {
    this.#secure = new https.Agent({ ...tls, keepAlive: true, maxFreeSockets: IDLE_MAX, maxSockets: SOCKETS_MAX });
    this.#headers = headers;
  }

  /** Sends one request and reads the whole answer, within so many milliseconds. */
  async post(to: URL, path: string, body: Buffer, within: number): Promise<Answer> {
    const deadline = performance.now() + within;
    for (;;) {
      try {
        return await this.#once(to, path, body, deadline - performance.now());
      } catch (err) {
        // A node that has closed an idle connection has read nothing on it; where it has, a
        // repetition of what this package sends is harmless. Each time there is one less.
        if (!(err instanceof Stale)) throw err;
      }
    }
  }

  #once(to: URL, path: string, body: Buffer, within: number): Promise<Answer> {
    const secure = to.protocol === "https:";
    return new Promise((resolve, reject) => {
      let heard = false;
      const request = (secure ? https : http).request({
        agent: secure ? this.#secure : this.#plain,
        host: to.hostname.replace(/^\[|\]$/g, ""),
        port: to.port || (secure ? 443 : 80),
        method: "POST",
        path,
        headers: { ...this.#headers, "Content-Type": "application/json", "Content-Length": body.length },
      });
      let ended = false;
      const end = (err: Error): void => {
        ended = true;
        clearTimeout(timer);
        request.destroy();
        reject(err);
      };
      // Where the event loop was blocked the answer may be there: it is read before this is believed.
      const late = (): void => end(new NoAnswer("late", `${to.host} did not answer in time`));
      const timer = setTimeout(() => setImmediate(() => ended || late()), Math.max(0, within));
      const failed = (err: NodeJS.ErrnoException): void => {
        if (request.reusedSocket && !heard) return end(new Stale());
        end(new NoAnswer(connecting(err) ? "unsent" : "lost", `${to.host}: ${err.code ?? err.message}`));
      };
      request.on("error", failed);
      request.on("response", (response) => {
        heard = true;
        const chunks: Buffer[] = [];
        let size = 0;
        response.on("data", (chunk: Buffer) => {
          size += chunk.length;
          chunks.push(chunk);
          if (size > BODY_MAX) end(new NoAnswer("lost", `${to.host} answers more than ${BODY_MAX} bytes`));
        });
        response.on("error", failed);
        response.on("aborted", () => end(new NoAnswer("lost", `${to.host} ended its answer early`)));
        response.on("end", () => {
          ended = true;
          clearTimeout(timer);
          resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString("utf8") });
        });
      });
      request.end(body);
    });
  }

  close(): void {
    this.#plain.destroy();
    this.#secure.destroy();
  }
}

/** The connection was an old one that had been closed. */
class Stale extends Error {}

function connecting(err: NodeJS.ErrnoException): boolean {
  return err.syscall === "connect" || err.syscall === "getaddrinfo" || /CERT|TLS|SSL|SELF_SIGNED/.test(err.code ?? "");
}
