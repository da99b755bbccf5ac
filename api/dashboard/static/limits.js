// Each limit, and the key of it that is under most pressure.

import { byId, element, foreign, lines, set, svg, write } from './dom.js';
import { count, duration, number, percent, perSecond, rate, seconds } from './format.js';
import { Table } from './table.js';

const watched = { OFF: 'off', SHADOW: 'shadow', WARN: 'warn' };

export function limits() {
  const table = new Table(byId('limits'), (row) => row.name, [
    { id: 'name', names: true, sort: (row) => row.name, fill: fillName },
    { id: 'used', sort: used, fill: fillDimensions },
    { id: 'waiting', sort: (row) => number(row.waiting), fill: fillWaiting },
    { id: 'state', sort: (row) => trouble(row.control), fill: fillState },
    { id: 'denied', sort: (row) => number(row.denied_last_minute), fill: fillDenied },
  ]);
  table.kind = (row) => (row.control?.blocked ? 'over' : row.control?.paused ? 'warned' : '');
  return table;
}

function used(row) {
  return Math.max(0, ...row.dimensions.map((one) => number(one.used_ppm)));
}

function fillName(cell, row) {
  const facts = [row.kind, watched[row.mode] && `${watched[row.mode]}: refuses nothing`].filter(Boolean).join(', ');
  const wanted = [{ text: row.name, kind: 'name' }, { text: facts, kind: 'small' }];
  if (row.key) {
    wanted.push({ text: `key ${row.key}` });
    if (number(row.keys) > 1) wanted.push({ text: `of ${count(row.keys)} keys`, kind: 'small' });
  }
  lines(cell, wanted);
}

function fillDimensions(cell, row, kept) {
  kept.dimensions ??= [];
  row.dimensions.forEach((dimension, i) => {
    if (!kept.dimensions[i]) {
      kept.dimensions[i] = makeDimension();
      cell.append(kept.dimensions[i].made);
    }
    fillDimension(kept.dimensions[i], row, dimension);
  });
  while (kept.dimensions.length > row.dimensions.length) kept.dimensions.pop().made.remove();
}

function makeDimension() {
  const name = foreign('');
  const binding = element('span', 'badge', 'binding');
  const level = svg('rect', { class: 'left', x: 0, y: 0, width: 0, height: 8 });
  const bar = svg('svg', { class: 'bar', viewBox: '0 0 120 8', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    svg('rect', { class: 'room', x: 0, y: 0, width: 120, height: 8 }), level);
  const figures = element('span', 'figures', '');
  const made = element('div', 'dimension', element('span', 'of', name, ' ', binding), bar, figures);
  return { made, name, binding, level, figures };
}

function fillDimension(kept, row, dimension) {
  write(kept.name, dimension.name);
  kept.binding.hidden = dimension.name !== row.binding;
  const level = number(dimension.level);
  const free = Math.min(1, Math.max(0, 1 - number(dimension.used_ppm) / 1e6));
  set(kept.level, { width: (120 * free).toFixed(1) });
  kept.made.classList.toggle('spent', free === 0);
  const parts = [`${count(level)} of ${count(dimension.burst)}${level < 0 ? ', debt' : ''}`];
  const pace = rate(dimension.rate);
  if (pace) parts.push(pace);
  parts.push(`${perSecond(dimension.granted_milli_per_second)} granted`, `${percent(dimension.used_ppm)} used`);
  write(kept.figures, parts.join(' · '));
}

function fillWaiting(cell, row) {
  if (number(row.waiting) === 0) {
    lines(cell, [{ text: 'nothing' }]);
    return;
  }
  const wanted = [
    { text: count(row.waiting), kind: 'name' },
    { text: `oldest ${duration(seconds(row.oldest))}, ETA ${duration(seconds(row.eta))}` },
  ];
  for (const queue of row.queues) {
    if (number(queue.waiting) === 0) continue;
    const waits = queue.eta ? `, oldest ${duration(seconds(queue.oldest))}, ETA ${duration(seconds(queue.eta))}` : '';
    wanted.push({ text: `${queue.class || 'no class'}: ${count(queue.waiting)}${waits}`, kind: 'small' });
  }
  lines(cell, wanted);
}

function trouble(control) {
  if (!control) return 0;
  if (control.blocked) return 3;
  return control.paused ? 2 : 1;
}

function fillState(cell, row) {
  const control = row.control;
  const wanted = [];
  if (!control) wanted.push({ text: 'open' });
  else if (control.blocked) wanted.push({ text: 'blocked', kind: 'bad' });
  else if (control.paused) wanted.push({ text: `paused, ${duration(seconds(control.paused))} more`, kind: 'bad' });
  if (control && !control.blocked && number(control.pace_ppm) < 1e6) {
    const whole = control.whole_in ? `, whole in ${duration(seconds(control.whole_in))}` : '';
    wanted.push({ text: `at ${percent(control.pace_ppm)} of its rate${whole}` });
  }
  if (wanted.length === 0) wanted.push({ text: 'open' });
  if (control?.reason) wanted.push({ text: control.reason, kind: 'small' });
  if (control?.client) wanted.push({ text: `said ${control.client}`, kind: 'small' });
  lines(cell, wanted);
}

function fillDenied(cell, row) {
  const wanted = [
    { text: `${count(row.denied_last_minute)} denied` },
    { text: `${count(row.granted_last_minute)} granted`, kind: 'small' },
  ];
  if (row.worst_key) wanted.push({ text: `worst: ${row.worst_key}`, kind: 'small' });
  lines(cell, wanted);
}
