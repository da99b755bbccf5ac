// How the cluster is: the line at the top, the nodes and what is open.

import { byId, lines, write } from './dom.js';
import { clock, count, duration, number, seconds } from './format.js';
import { Table } from './table.js';

const severities = ['INFO', 'WARNING', 'CRITICAL'];

export function nodes() {
  const table = new Table(byId('nodes'), (row) => row.id, [
    { id: 'id', names: true, sort: (row) => row.id, fill: (cell, row) => lines(cell, [{ text: row.id, kind: 'name' }]) },
    { id: 'role', names: true, sort: role, fill: (cell, row) => write(cell, role(row)) },
    { id: 'healthy', sort: (row) => (row.healthy ? 0 : 1), fill: fillHealthy },
    { id: 'behind', sort: (row) => number(row.lag ?? -1), fill: fillBehind },
    { id: 'address', names: true, sort: (row) => row.http, fill: (cell, row) => lines(cell, [{ text: row.http || '–' }]) },
    { id: 'version', names: true, sort: (row) => row.version, fill: (cell, row) => lines(cell, [{ text: row.version || '–' }]) },
  ]);
  table.kind = (row) => (row.healthy ? '' : 'over');
  return table;
}

const role = (row) => (row.leads ? 'leader' : row.role.toLowerCase());

function fillHealthy(cell, row) {
  lines(cell, [row.healthy ? { text: 'yes' } : { text: 'no', kind: 'bad' }]);
}

/** Absent where the node does not answer. */
function fillBehind(cell, row) {
  lines(cell, [{ text: (row.lag ?? null) === null ? '–' : count(row.lag) }]);
}

/** Of a limit the value is the key; of a client it is a figure, which changes. */
const place = (row) => [row.limit, row.value].filter(Boolean).join('/');
export const alertWho = (row) => [row.client, row.limit && place(row), row.node].filter(Boolean).join(', ');

/** One incident keeps its key for as long as it is open. */
export const alertKey = (row) => [row.kind, row.client, row.limit, row.limit && row.value, row.node, row.since].join('\u0000');

export function alerts() {
  const table = new Table(byId('alert-list'), alertKey, [
    {
      id: 'severity',
      sort: (row) => severities.indexOf(row.severity),
      fill: (cell, row) => lines(cell, [{ text: row.severity.toLowerCase(), kind: row.severity === 'CRITICAL' ? 'bad' : '' }]),
    },
    { id: 'kind', names: true, sort: (row) => row.kind, fill: (cell, row) => lines(cell, [{ text: row.kind, kind: 'name' }]) },
    { id: 'who', names: true, sort: alertWho, fill: (cell, row) => lines(cell, [{ text: alertWho(row) || '–' }]) },
    { id: 'since', sort: (row) => Date.parse(row.since), fill: fillSince },
    { id: 'text', names: true, sort: (row) => row.text, fill: (cell, row) => lines(cell, [{ text: row.text || row.value || '–' }]) },
    { id: 'runbook', names: true, sort: (row) => row.kind, fill: (cell, row) => lines(cell, [{ text: `alerts.md#${row.kind.toLowerCase()}` }]) },
  ]);
  table.kind = (row) => (row.severity === 'CRITICAL' ? 'over' : row.severity === 'WARNING' ? 'warned' : '');
  return table;
}

function fillSince(cell, row) {
  lines(cell, [
    { text: clock(row.since) },
    { text: duration(Math.max(0, (row.now - Date.parse(row.since)) / 1e3)), kind: 'small' },
  ]);
}

function fact(id, text, kind) {
  write(byId(id), text);
  const line = byId(`${id === 'retry-alerts' ? 'retry' : id}-fact`);
  const wanted = `fact ${kind}`.trim();
  if (line.className !== wanted) line.className = wanted;
}

export function status(picture) {
  const voters = picture.nodes.filter((one) => one.role === 'VOTER');
  const well = voters.filter((one) => one.healthy).length;
  const ill = picture.nodes.some((one) => !one.healthy);
  const critical = picture.alerts.some((one) => one.severity === 'CRITICAL');
  if (!picture.has_quorum) fact('health', 'no quorum', 'is-bad');
  else if (!picture.leader) fact('health', 'electing', 'is-odd');
  else if (ill || critical) fact('health', ill ? 'a node is not well' : 'an alert is critical', 'is-odd');
  else fact('health', 'healthy', 'is-good');
  fact('leader', picture.leader || 'none', picture.leader ? '' : 'is-bad');
  fact('quorum', `${picture.has_quorum ? 'yes' : 'no'}, ${well} of ${voters.length} voters`, picture.has_quorum ? '' : 'is-bad');
  const firing = number(picture.retry_alerts);
  fact('retry-alerts', `retry-budget alerts: ${count(firing)} firing`, firing > 0 ? 'is-bad' : 'is-good');
  const waiting = picture.limits.reduce((sum, one) => sum + number(one.waiting), 0);
  const oldest = Math.max(0, ...picture.limits.map((one) => seconds(one.oldest) ?? 0));
  fact('waiting', waiting > 0 ? `${count(waiting)}, oldest ${duration(oldest)}` : 'nothing', '');
  fact('p95', duration(seconds(picture.never_limited_p95)), '');
  write(byId('node'), picture.node);
}

/** Whether the picture is live: the most important thing to know of it. */
export function freshness(state, still) {
  const lost = byId('lost');
  document.body.classList.toggle('old', state.kind === 'stale' || state.kind === 'lost');
  if (state.kind === 'lost') {
    const wait = Math.max(0, Math.ceil((state.again - Date.now()) / 1e3));
    fact('feed', `disconnected, asking again in ${wait} s`, 'is-bad');
    const why = state.why ? ` (${state.why})` : '';
    write(lost, `Disconnected since ${clock(state.since)}${why}. What is shown is from then.`);
  } else if (state.kind === 'stale') {
    fact('feed', `stale since ${clock(state.since)}`, 'is-odd');
  } else if (state.kind === 'connecting') {
    fact('feed', 'connecting', '');
  } else {
    fact('feed', still ? `held still since ${clock(still)}` : 'live', still ? 'is-odd' : 'is-good');
  }
  lost.hidden = state.kind !== 'lost';
}
