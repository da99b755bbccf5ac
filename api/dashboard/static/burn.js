// What is left of each client's retries while the page is open. Bounded: by
// clients, of which those not seen for longest go, and by samples, of which every
// second goes when there are too many, so that what stays reaches back to the
// beginning.

import { set, svg } from './dom.js';
import { number } from './format.js';

const clientsMax = 200;
const samplesMax = 240;
const gapFirst = 250;
const width = 120;

export class Burns {
  constructor() {
    this.of = new Map();
  }

  note(now, clients) {
    for (const client of clients) {
      const burn = this.of.get(client.client) ?? { samples: [], gap: gapFirst };
      this.of.delete(client.client);
      this.of.set(client.client, burn);
      const last = burn.samples.at(-1);
      if (last && now - last[0] < burn.gap) continue;
      burn.samples.push([now, left(client)]);
      if (burn.samples.length > samplesMax) {
        burn.samples = burn.samples.filter((_, i) => i % 2 === 0);
        burn.gap *= 2;
      }
    }
    while (this.of.size > clientsMax) this.of.delete(this.of.keys().next().value);
  }

  /** The line of one client, its last point being now. */
  line(now, client) {
    const samples = [...(this.of.get(client.client)?.samples ?? []), [now, left(client)]];
    const begin = samples[0][0];
    const span = Math.max(now - begin, 1);
    return samples.map(([at, share]) => {
      const x = ((at - begin) / span) * width;
      return `${x.toFixed(1)},${(17 - 15 * share).toFixed(1)}`;
    }).join(' ');
  }
}

/** What is left as a part of what is allowed, 0 to 1. */
export function left(client) {
  const allowed = number(client.retries_allowed);
  if (allowed <= 0) return 0;
  return Math.min(1, Math.max(0, number(client.retries_left) / allowed));
}

/** The picture of it: the history above, what is left as a bar below. */
export function picture() {
  const history = svg('polyline', { class: 'history', points: '' });
  const bar = svg('rect', { class: 'left', x: 0, y: 22, width: 0, height: 7 });
  const room = svg('rect', { class: 'room', x: 0, y: 22, width, height: 7 });
  const made = svg('svg', {
    class: 'burn', viewBox: `0 0 ${width} 30`, preserveAspectRatio: 'none', role: 'img',
  }, room, bar, history);
  return { made, history, bar };
}

export function draw(kept, line, share, label) {
  set(kept.history, { points: line });
  set(kept.bar, { width: (width * share).toFixed(1) });
  set(kept.made, { 'aria-label': label });
}
