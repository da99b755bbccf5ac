import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { Client, Closed, currentAttempt, Denied, retry, RETRY_HEADER, retryAfterMs, retryingFetch, Unanswered } from 'quorlease';

const FREE = { limit: 'free', dimension: 'requests' };
const grants = (call, request) => {
  if (call === 'acquire') {
    const lease = { id: request.lease_id, charges: request.charges, ttl: '5s', tracked: true };
    return [200, { decision: 'GRANTED', source: 'CONSENSUS', lease, denials: [] }];
  }
  return [200, { state: call === 'settle' ? 'SETTLED' : 'RELEASED', settlements: [], ttl: '0s', booked: [] }];
};
const denies = (denial) => () => [200, { decision: 'DENIED', denials: [denial] }];

/** A node that answers as a function says, and remembers what it was asked. */
async function node(t, answer = grants) {
  const n = { answer, asked: [], sockets: 0 };
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const call = request.url.split(':')[1];
    const body = JSON.parse(text || '{}');
    n.asked.push({ call, body, headers: request.headers });
    const [status, reply, headers] = await n.answer(call, body);
    response.writeHead(status, headers).end(JSON.stringify(reply));
  });
  server.on('connection', () => n.sockets++);
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  t.after(() => {
    server.closeAllConnections();
    return new Promise((closed) => server.close(closed));
  });
  n.url = `http://127.0.0.1:${server.address().port}`;
  n.connections = () => new Promise((counted) => server.getConnections((_, count) => counted(count)));
  n.calls = (name) => n.asked.filter((a) => a.call === name).map((a) => a.body);
  return n;
}

function client(t, endpoints, options = {}) {
  const warnings = [];
  const c = new Client({
    endpoints, client: 't', deadlineMs: 20_000, logger: { warn: (w) => warnings.push(w) }, ...options,
  });
  t.after(() => c.close());
  return Object.assign(c, { warnings });
}

async function nobody() {
  const server = createServer();
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address();
  await new Promise((closed) => server.close(closed));
  return `127.0.0.1:${port}`;
}

const sockets = () => process.getActiveResourcesInfo().filter((r) => r.startsWith('TCP')).length;
let atFirst;
before(() => (atFirst = sockets()));
after(async () => {
  // A socket is closed a little after it was told to be.
  const until = Date.now() + 5000;
  while (sockets() > atFirst && Date.now() < until) await new Promise((later) => setTimeout(later, 10));
  assert.equal(sockets(), atFirst, 'sockets are left');
});

test('connections are used again and closed', async (t) => {
  const n = await node(t);
  const c = client(t, [n.url]);
  for (let i = 0; i < 20; i++) await c.settle((await c.acquire(FREE)).lease);
  assert.equal(n.sockets, 1);
  await c.close();
  await c.close();
  const until = Date.now() + 5000;
  while ((await n.connections()) > 0 && Date.now() < until) await new Promise((later) => setTimeout(later, 10));
  assert.equal(await n.connections(), 0);
  await assert.rejects(c.acquire(FREE), Closed);
});

test('two hundred calls at once', async (t) => {
  const n = await node(t);
  const c = client(t, [n.url]);
  const all = await Promise.all(Array.from({ length: 200 }, () => c.acquire(FREE)));
  assert.equal(new Set(all.map((d) => d.lease.id)).size, 200);
  assert.ok(all.every((d) => d.source === 'consensus'));
});

test('two hundred calls that nobody answers warn once', async (t) => {
  const c = client(t, [await nobody()]);
  const all = await Promise.all(Array.from({ length: 200 }, () => c.acquire(FREE)));
  assert.ok(all.every((d) => d.granted && d.source === 'local'));
  assert.equal(c.warnings.length, 1);
  assert.ok(c.away);
  await assert.rejects(c.settle({ id: '0'.repeat(32), charges: [], ends: 0, tracked: true, local: false }), Unanswered);
});

test('a blocked event loop is no slow node', async (t) => {
  const n = await node(t);
  const c = client(t, [n.url], { deadlineMs: 500 });
  await c.acquire(FREE);
  n.answer = (call, request) => {
    // The answer is sent, and then nobody reads for longer than the deadline.
    setImmediate(() => setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 800)));
    return grants(call, request);
  };
  assert.equal((await c.acquire(FREE)).source, 'consensus');
});

test('what was admitted alone is reported once', async (t) => {
  const n = await node(t);
  const c = client(t, [n.url], { probeEveryMs: 10 });
  await c.acquire(FREE);
  n.answer = () => [503, { reason: 'NO_QUORUM' }];
  for (let i = 0; i < 5; i++) await c.acquire({ limit: 'free', dimension: 'requests', amount: 2, key: 'é' });
  n.answer = grants;
  const until = Date.now() + 20_000;
  while ((c.away || n.calls('report').length === 0) && Date.now() < until) await c.acquire(FREE);
  for (let i = 0; i < 5; i++) await c.acquire(FREE);
  await c.close();
  const reports = n.calls('report').map((r) => r.admitted.find((a) => a.key === 'é')).filter(Boolean);
  assert.deepEqual(reports.map((a) => a.tokens), ['10']);
});

test('limit settles, releases and says no', async (t) => {
  const n = await node(t);
  const c = client(t, [n.url]);
  const charge = { limit: 'free', dimension: 'tokens', amount: 9 };
  assert.equal(await c.limit(charge, async (w) => (w.used({ tokens: 4 }), w.used({ tokens: 5 }), 'done')), 'done');
  await assert.rejects(c.limit(FREE, async () => { throw new TypeError('of the work'); }), TypeError);
  await c.limit(FREE, async (w) => w.unused());
  assert.deepEqual(n.calls('settle').map((r) => r.used.map((u) => u.used)), [['5'], []]);
  assert.equal(n.calls('release').length, 1);
  n.answer = denies({ reason: 'RATE', retry_after: '2s' });
  await assert.rejects(c.limit(FREE, () => assert.fail('it ran')), (err) => {
    const wait = retryAfterMs(err.decision);
    return err instanceof Denied && wait >= 2000 && wait <= 2200;
  });
});

test('bad configurations name the field', () => {
  const good = { endpoints: ['127.0.0.1:7301'], client: 't' };
  for (const [bad, field] of [
    [{ endpoints: [] }, 'endpoints'], [{ endpoints: '127.0.0.1:1' }, 'endpoints'],
    [{ endpoints: ['ftp://a:1'] }, 'endpoints[0]'], [{ endpoints: ['http://a:1/path'] }, 'endpoints[0]'],
    [{ client: '' }, 'client'], [{ client: 'a\n' }, 'client'], [{ client: '\ud800' }, 'client'],
    [{ deadlineMs: 0 }, 'deadlineMs'], [{ deadlineMs: NaN }, 'deadlineMs'], [{ fallback: 'share' }, 'fallback'],
    [{ share: 2 }, 'share'], [{ probeEveryMs: '1' }, 'probeEveryMs'],
  ]) {
    assert.throws(() => new Client({ ...good, ...bad }), (err) => err.message.startsWith(`BAD_FIELD: ${field}: `), field);
  }
});

test('a wrong certificate is nobody', async (t) => {
  const n = await node(t);
  const c = client(t, [n.url.replace('http', 'https')], { deadlineMs: 5000 });
  assert.equal((await c.acquire(FREE)).source, 'local');
});

test('retry: which tries there are', async (t) => {
  const answer = (status, headers = {}) => ({ status, headers: { 'retry-after-ms': '0', ...headers } });
  t.mock.method(Math, 'random', () => 0);
  for (const [name, outcomes, options, want] of [
    ['an answer', [answer(200)], {}, ['0']],
    ['refused, then not', [answer(429), answer(200)], {}, ['0', '1']],
    ['three in all', [answer(429), answer(503), answer(529), answer(200)], {}, ['0', '1', '2']],
    ['as often as it is said', [answer(429)], { attempts: 1 }, ['0']],
    ['told to stop', [answer(429, { 'X-Should-Retry': 'false' })], {}, ['0']],
    ['told to go on', [answer(500, { 'x-should-retry': 'true' }), answer(200)], {}, ['0', '1']],
    ['an error that is none of these', [answer(500)], {}, ['0']],
    ['no answer', [new TypeError('lost')], {}, ['0']],
    ['an error with an answer', [Object.assign(new Error('no'), { response: answer(429) }), answer(200)], {}, ['0', '1']],
    ['a longer wait than one waits', [answer(429, { 'retry-after-ms': '61000' })], {}, ['0']],
    ['a wait that ends too late', [answer(429, { 'retry-after-ms': '5000' })], { withinMs: 2000 }, ['0']],
    ['its own retries', [answer(429), answer(200)], { headers: { 'X-Retry-Attempt': '4' } }, ['4', '5']],
    ['a marker that is none', [answer(200)], { headers: { 'x-retry-attempt': '-4' } }, ['0']],
    ['a denial', [new Denied({ denials: [{ reason: 'RATE', retryAfterMs: 1 }] }), answer(200)], {}, ['0', '1']],
    ['never', [new Denied({ denials: [{ reason: 'ATTEMPTS', never: true }] })], {}, ['0']],
  ]) {
    const sent = [];
    const left = [...outcomes];
    await retry(async (one) => {
      sent.push(one.headers[RETRY_HEADER]);
      assert.equal(String(currentAttempt()), sent.at(-1));
      const outcome = left.shift();
      if (outcome instanceof Error) throw outcome;
      return outcome;
    }, options).catch(() => undefined);
    assert.deepEqual(sent, want, name);
  }
  await assert.rejects(retry(async () => 1, { attempts: 0 }), /attempts: 0/);
});

test('fetch, and an acquire inside', async (t) => {
  t.mock.method(Math, 'random', () => 0);
  const n = await node(t, (call, request) => (
    call === 'ask' && n.asked.length < 2 ? [429, {}, { 'retry-after-ms': '30' }] : grants(call, request)));
  const began = performance.now();
  const response = await retryingFetch(`${n.url}/v1/x:ask`, { method: 'POST', body: '{}' });
  assert.equal(response.status, 200);
  await response.text();
  assert.ok(performance.now() - began >= 30);
  assert.deepEqual(n.asked.map((a) => a.headers[RETRY_HEADER]), ['0', '1']);
  const c = client(t, [n.url]);
  await retry(() => c.acquire(FREE), { headers: { [RETRY_HEADER]: '2' } });
  assert.equal(n.calls('acquire')[0].attempt, 2);
});
