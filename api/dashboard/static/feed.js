// The stream of pictures. A node sends one each second; where none comes the page
// says so, and asks again with pauses that grow and differ, so that a node that
// comes back is not met by all pages at once.

const staleAfter = 2500;
const deadAfter = 6000;
const pauseFirst = 500;
const pauseMax = 10000;
const askWithin = 3000;

export class Feed {
  /** picture gets each picture, changed is called when `state` may differ. */
  constructor(path, picture, changed) {
    this.path = path;
    this.picture = picture;
    this.changed = changed;
    /** connecting, live, stale or lost; since and again are Date.now() times. */
    this.state = { kind: 'connecting', since: Date.now(), again: 0, why: '' };
    this.failures = 0;
    this.heard = 0;
    this.open();
    setInterval(() => this.look(), 500);
    addEventListener('online', () => this.state.kind === 'lost' && this.open());
  }

  open() {
    clearTimeout(this.timer);
    this.close();
    this.begun = performance.now();
    this.source = new EventSource(this.path);
    this.source.addEventListener('overview', (event) => this.take(event.data));
    this.source.addEventListener('error', (event) => this.lose(reason(event.data)));
  }

  close() {
    this.source?.close();
    this.source = null;
  }

  take(text) {
    let picture;
    try {
      picture = JSON.parse(text);
    } catch {
      this.lose('what came is no JSON');
      return;
    }
    this.failures = 0;
    this.heard = performance.now();
    this.become('live', Date.now());
    this.picture(picture);
  }

  lose(why) {
    this.close();
    const pause = Math.min(pauseMax, pauseFirst * 2 ** this.failures) * (0.8 + 0.4 * Math.random());
    this.failures++;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.open(), pause);
    this.state.again = Date.now() + pause;
    // Since the last picture, not since the connection was found to be gone.
    const since = this.heard ? Date.now() - (performance.now() - this.heard) : this.state.since;
    this.become('lost', this.state.kind === 'lost' ? this.state.since : since, why || this.state.why);
    if (!why) this.ask();
  }

  /** A stream that is refused does not say why; the same asked for otherwise does, or a single picture. */
  async ask() {
    let why = 'the node does not answer';
    try {
      why = (await refusal(this.path)) || (await refusal(this.path.replace(':watch', ''))) || 'the stream ended';
    } catch {
      // It does not answer this either.
    }
    if (this.state.kind === 'lost') this.become('lost', this.state.since, why);
  }

  /** A connection that is open but silent is found by the clock. */
  look() {
    if (this.source && performance.now() - Math.max(this.heard, this.begun) > deadAfter) {
      this.lose('nothing came for 6 s');
    } else if (this.state.kind === 'live' && performance.now() - this.heard > staleAfter) {
      this.become('stale', this.state.since);
    }
    this.changed(this.state);
  }

  become(kind, since, why = '') {
    this.state = { ...this.state, kind, since, why };
    this.changed(this.state);
  }
}

/** Why the node refuses a request, empty where it does not. */
async function refusal(path) {
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), askWithin);
  try {
    const answer = await fetch(path, { cache: 'no-store', signal: stop.signal });
    return answer.ok ? '' : reason(await answer.text());
  } finally {
    clearTimeout(timer);
    stop.abort();
  }
}

function reason(text) {
  if (!text) return '';
  try {
    return String(JSON.parse(text).message ?? '');
  } catch {
    return '';
  }
}
