// Does what it is told, a line of JSON at a time: the same of every language (clients/conformance).
import { createInterface } from 'node:readline';
import { Client, RequestError, Unanswered } from 'quorlease';

let client;
const leases = new Map();
const count = { began: 0, ended: 0 };
const logger = {
  warn(message) {
    if (message.includes('alone (')) count.began++;
    else if (message.includes('again after')) count.ended++;
  },
};

const lease = (r) => leases.get(r.lease_id) ?? { id: r.lease_id, charges: [], ends: 0, tracked: true, local: false };
const used = (r) => (r.used ?? []).map((u) => ({ ...u, used: Number(u.used) }));
const settled = (s) => ({
  state: s.state, repeated: s.repeated, local: s.local,
  settlements: s.charges.map((c) => ({
    used: String(c.used), refunded: String(c.refunded), excess: String(c.excess), written_off: String(c.writtenOff),
  })),
});

// A double has no 2**53 + 1: what is not exact is passed on as what it is not.
const exact = (text) => (String(BigInt(Number(text))) === text ? Number(text) : Number.NaN);

const operations = {
  async open(r) {
    await client?.close();
    count.began = count.ended = 0;
    client = new Client({
      endpoints: r.endpoints, client: r.client, deadlineMs: r.deadline_ms, probeEveryMs: 50,
      fallback: r.fallback ?? 'open', logger,
    });
    return {};
  },
  async acquire(r) {
    const d = await client.acquire((r.charges ?? []).map((c) => ({ ...c, amount: exact(c.amount) })), {
      client: r.client, priority: r.class, attempt: r.attempt, track: r.track, maxWaitMs: r.max_wait_ms,
      leaseId: r.lease_id, attributes: r.attributes,
      amounts: Object.fromEntries(Object.entries(r.amounts ?? {}).map(([name, n]) => [name, Number(n)])),
    });
    if (d.lease) leases.set(d.lease.id, d.lease);
    return {
      granted: d.granted, local: d.source === 'local', repeated: d.repeated,
      denials: d.denials.map((n) => ({ ...n, retry_after_ms: n.retryAfterMs })),
      warnings: d.warnings.map((n) => n.reason), remaining: d.remaining.map((n) => String(n.tokens)),
      waited: (d.queue?.waitedMs ?? 0) > 0,
      charges: (d.lease?.charges ?? []).map((c) => `${c.limit}/${c.key}/${c.dimension}=${c.amount}`),
    };
  },
  settle: async (r) => settled(await client.settle(lease(r), used(r), { progress: r.progress })),
  release: async (r) => settled(await client.release(lease(r))),
  renew: async (r) => settled(await client.renew(lease(r), r.ttl_ms, r.sequence, used(r))),
};

for await (const line of createInterface({ input: process.stdin })) {
  const r = JSON.parse(line);
  let answer;
  try {
    answer = await operations[r.op](r);
  } catch (err) {
    if (err instanceof RequestError) answer = { error: err.reason, message: err.message };
    else if (err instanceof Unanswered) answer = { error: 'UNANSWERED', message: err.message };
    else throw err;
  }
  process.stdout.write(JSON.stringify({ ...answer, alerts: count.began, resolved: count.ended }) + '\n');
}
await client?.close();
