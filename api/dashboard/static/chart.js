// 429s against successes over the last hour: two lines, in red and in the quiet
// colour, on one scale.

import { byId, set, write } from './dom.js';
import { count, number } from './format.js';

const slot = 10_000;
const hour = 3_600_000;
const width = 720;
const height = 160;

const series = {
  provider: { bad: 'throttled', good: 'ok', names: ['429s', 'successes'] },
  node: { bad: 'denied', good: 'granted', names: ['denied', 'granted'] },
};

export class Chart {
  constructor() {
    this.history = [];
    this.now = 0;
    for (const name of Object.keys(series)) byId(`series-${name}`).addEventListener('change', () => this.draw());
  }

  /** now is the node's time in ms. The point that has not ended is not shown: it would fall for no reason. */
  show(now, history) {
    this.now = Math.floor(now / slot) * slot;
    this.history = history.filter((point) => number(point.start_unix_ms) + slot <= now);
    this.draw();
  }

  draw() {
    const { bad, good, names } = byId('series-node').checked ? series.node : series.provider;
    const bads = this.values(bad);
    const goods = this.values(good);
    const top = nice(Math.max(6, ...bads, ...goods));
    this.line('plot-bad', bads, top);
    this.line('plot-good', goods, top);
    const [lastBad, lastGood] = [bads.at(-1) ?? 0, goods.at(-1) ?? 0];
    write(byId('bad-label'), names[0]);
    write(byId('good-label'), names[1]);
    write(byId('bad-now'), count(lastBad));
    write(byId('good-now'), count(lastGood));
    const all = lastBad + lastGood;
    const share = all > 0 ? `${((100 * lastBad) / all).toFixed(1)} % ${names[0]}` : '';
    write(byId('share-now'), share);
    write(byId('plot-top'), count(top));
    const most = Math.max(0, ...bads);
    set(byId('plot'), {
      'aria-label': `Now ${count(lastBad)} ${names[0]} and ${count(lastGood)} ${names[1]} a minute; `
        + `in the last hour at most ${count(most)} ${names[0]} a minute.`,
    });
  }

  /** A value a minute for each 10 s of the time that is known; where nothing was told there was nothing. */
  values(name) {
    if (this.history.length === 0) return [];
    const first = Math.max(number(this.history[0].start_unix_ms), this.now - hour);
    const found = new Array(Math.max(0, Math.round((this.now - first) / slot))).fill(0);
    for (const point of this.history) {
      const at = Math.round((number(point.start_unix_ms) - first) / slot);
      if (at >= 0 && at < found.length) found[at] = 6 * number(point[name]);
    }
    return found;
  }

  line(id, values, top) {
    const step = (width * slot) / hour;
    const begin = width - values.length * step;
    const points = values.map((value, i) => {
      const y = height - 1 - ((height - 6) * value) / top;
      return `${(begin + (i + 0.5) * step).toFixed(1)} ${y.toFixed(1)}`;
    });
    if (points.length > 0) points.push(`${width} ${points.at(-1).split(' ')[1]}`);
    const path = points.length > 0 ? `M${points.join('L')}` : '';
    set(byId(id), { d: path });
    set(byId(`${id}-area`), { d: path && `${path}L${width} ${height}L${begin.toFixed(1)} ${height}Z` });
  }
}

/** The next of 1, 2, 5, 10, 20 … */
function nice(value) {
  const unit = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((one) => one * unit).find((one) => one >= value);
}
