// The page: what the node says is kept, and drawn with the browser's next frame.

import { Burns } from './burn.js';
import { Chart } from './chart.js';
import { alertKey, alerts, alertWho, freshness, nodes, status } from './cluster.js';
import { byId, set, write } from './dom.js';
import { count, number } from './format.js';
import { Feed } from './feed.js';
import { limits } from './limits.js';
import { offenders } from './offenders.js';

const announcedMax = 3;

const burns = new Burns();
const tables = { clients: offenders(burns), limits: limits(), nodes: nodes(), alerts: alerts() };
const chart = new Chart();
const filter = byId('filter');

let latest = null;
let shown = null;
let still = null;
let asked = false;
let open = null;

function take(picture) {
  latest = picture;
  burns.note(performance.now(), picture.clients);
  announce(picture.alerts);
  const firing = number(picture.retry_alerts);
  document.title = firing > 0 ? `(${firing}) Quorlease ${picture.node}` : `Quorlease ${picture.node}`;
  if (!still) draw();
}

/** A hidden page gets no frames, and so draws nothing. */
function draw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    if (!still || !shown) shown = latest;
    if (shown) show(shown);
  });
}

function show(picture) {
  const now = Date.parse(picture.time);
  const warned = new Set(picture.alerts.filter((one) => one.kind === 'ClientRetryWarning').map((one) => one.client));
  status(picture);
  const clients = picture.clients.map((one) => ({ ...one, warned: warned.has(one.client) }));
  note('offenders-note', tables.clients.show(clients, has('client', 'error', 'retry_budget')), picture.clients_total);
  chart.show(now, picture.history);
  note('limits-note', tables.limits.show(picture.limits, has('name', 'key', 'worst_key', 'binding')), picture.limits_total);
  tables.nodes.show(picture.nodes.map((one) => ({ ...one, leads: one.id === picture.leader })));
  const firing = picture.alerts.map((one) => ({ ...one, now }));
  note('alerts-note', tables.alerts.show(firing, has('kind', 'client', 'limit', 'value', 'node', 'text')), picture.alerts_total);
  set(byId('main'), { 'aria-busy': 'false' });
}

/** Whether one of a row's fields has what is looked for in it. */
function has(...fields) {
  const wanted = filter.value.trim().toLowerCase();
  return (row) => fields.some((field) => String(row[field] ?? '').toLowerCase().includes(wanted));
}

function note(id, rows, total) {
  write(byId(id), number(total) > rows ? `${count(rows)} of ${count(total)}` : '');
}

/** Reads out what has begun and what is over, not what was open when the page came. */
function announce(firing) {
  const before = open;
  open = new Map(firing.map((one) => [alertKey(one), one]));
  if (!before) return;
  const news = [
    ...[...open].filter(([key]) => !before.has(key)).map(([, one]) => `New alert: ${title(one)}.`),
    ...[...before].filter(([key]) => !open.has(key)).map(([, one]) => `Over: ${title(one)}.`),
  ];
  if (news.length === 0) return;
  const more = news.length > announcedMax ? ` And ${news.length - announcedMax} more.` : '';
  write(byId('announce'), news.slice(0, announcedMax).join(' ') + more);
}

const title = (one) => [one.kind, alertWho(one), !one.limit && one.value].filter(Boolean).join(' ');

function hold() {
  still = still ? null : Date.now();
  set(byId('pause'), { 'aria-pressed': String(Boolean(still)) });
  write(byId('pause'), still ? 'Go on' : 'Hold still');
  freshness(feed.state, still);
  draw();
}

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || byId('help').open) return;
  if (event.target === filter) {
    if (event.key !== 'Escape') return;
    filter.value = '';
    draw();
  } else if (event.key === '/') {
    filter.focus();
  } else if (event.key === '?') {
    byId('help').showModal();
  } else if (event.key === 'p') {
    hold();
  } else {
    return;
  }
  event.preventDefault();
}

const feed = new Feed('/v1/overview:watch?top=50', take, (state) => freshness(state, still));
filter.addEventListener('input', draw);
byId('pause').addEventListener('click', hold);
byId('help-open').addEventListener('click', () => byId('help').showModal());
byId('help-close').addEventListener('click', () => byId('help').close());
addEventListener('keydown', keys);
