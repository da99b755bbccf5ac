// Who throttles and is throttled: the worst first, as the node orders them.

import { draw, left, picture } from './burn.js';
import { byId, element, foreign, lines, write } from './dom.js';
import { count, duration, number, percent, seconds } from './format.js';
import { Table } from './table.js';

const modes = { OFF: 'off', SHADOW: 'shadow, refuses nothing', WARN: 'warns, refuses nothing' };
const watched = (client) => client.mode in modes;

export function offenders(burns) {
  const table = new Table(byId('clients'), (row) => row.client, columns(burns));
  table.kind = (row) => (row.over_budget ? 'over' : row.warned ? 'warned' : '');
  return table;
}

function columns(burns) {
  return [
    { id: 'client', names: true, sort: (row) => row.client, fill: fillClient },
    { id: 'throttled', sort: (row) => number(row.throttled), fill: (cell, row) => write(cell, count(row.throttled)) },
    { id: 'fraction', sort: (row) => number(row.fraction_ppm), fill: fillFraction },
    {
      id: 'left',
      sort: (row) => (row.retry_budget ? -left(row) : -2),
      fill: (cell, row, kept) => fillLeft(burns, cell, row, kept),
    },
    { id: 'budget', names: true, sort: (row) => row.retry_budget, fill: fillBudget },
    { id: 'honours', sort: (row) => (row.honours_waits === false ? 2 : row.honours_waits ? 0 : 1), fill: fillHonours },
    { id: 'error', names: true, sort: (row) => row.error, fill: (cell, row) => lines(cell, [{ text: row.error || '–' }]) },
  ];
}

function fillClient(cell, row, kept) {
  if (!kept.name) {
    kept.name = foreign('');
    kept.badge = element('span', 'badge', '');
    cell.append(kept.name, ' ', kept.badge);
  }
  write(kept.name, row.client);
  write(kept.badge, badge(row));
  kept.badge.hidden = kept.badge.textContent === '';
}

function badge(row) {
  if (row.over_budget) {
    const since = row.over_for ? ` for ${duration(seconds(row.over_for))}` : '';
    return watched(row) ? `over budget${since}, only watched` : `over budget${since}`;
  }
  return row.warned ? 'warning' : '';
}

function fillFraction(cell, row) {
  lines(cell, [
    { text: percent(row.fraction_ppm) },
    { text: `${count(row.retries)} of ${count(row.requests)}`, kind: 'small' },
  ]);
}

function fillLeft(burns, cell, row, kept) {
  if (!kept.burn) {
    kept.burn = picture();
    kept.left = element('span', '', '');
    cell.append(kept.burn.made, kept.left);
  }
  const any = Boolean(row.retry_budget);
  kept.burn.made.toggleAttribute('hidden', !any);
  if (!any) {
    write(kept.left, '–');
    return;
  }
  let text = `${count(row.retries_left)} of ${count(row.retries_allowed)}`;
  if (row.frees_in) text += `, free in ${duration(seconds(row.frees_in))}`;
  write(kept.left, text);
  draw(kept.burn, burns.line(performance.now(), row), left(row), `${text} retries left`);
}

function fillBudget(cell, row) {
  if (!row.retry_budget) {
    lines(cell, [{ text: 'no', kind: 'bad' }]);
    return;
  }
  lines(cell, [{ text: `yes: ${row.retry_budget}` }, ...(watched(row) ? [{ text: modes[row.mode], kind: 'small' }] : [])]);
}

function fillHonours(cell, row) {
  const early = { text: `${count(row.early)} of ${count(row.denied)} early`, kind: 'small' };
  if (row.honours_waits === undefined || row.honours_waits === null) lines(cell, [{ text: 'not known yet' }]);
  else if (row.honours_waits) lines(cell, [{ text: 'yes' }, early]);
  else lines(cell, [{ text: 'no', kind: 'bad' }, early]);
}
