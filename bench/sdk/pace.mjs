// Loaded before an SDK (node --import): the waits that it asks for are written down
// and made shorter. It changes no SDK: they take setTimeout as they find it. Timers
// of Node's own, such as those of its connections, are left as they are.
//
// QUORLEASE_PACE is how many times shorter (1), QUORLEASE_PACE_MOST how long a wait
// may be at most after that, in milliseconds (250).
import { promisify } from 'node:util';

const pace = Number(process.env.QUORLEASE_PACE ?? 1);
const most = Number(process.env.QUORLEASE_PACE_MOST ?? 250);
const real = globalThis.setTimeout;

// REQUEST is the timeout of a request that drive.mjs gives to each SDK, in
// milliseconds. It is no wait, and as long as it says; neither is what is left of it
// when an answer has begun.
export const REQUEST = 543_210;

const isTimeout = (wait) => wait > REQUEST - 60_000 && wait <= REQUEST;

// asked has the waits in milliseconds, in their order, until take takes them.
let asked = [];

export function take() {
  const taken = asked;
  asked = [];
  return taken;
}

function paced(callback, wait, ...rest) {
  if (isTimeout(wait) || !new Error().stack.includes('/node_modules/')) {
    return real(callback, wait, ...rest);
  }
  asked.push(wait);
  // What a timer can't hold, it makes 1 ms of. Nothing comes early.
  const held = wait > 2 ** 31 - 1 ? 1 : wait;
  return real(callback, Math.min(Math.ceil(held / pace), most), ...rest);
}

paced[promisify.custom] = real[promisify.custom];
globalThis.setTimeout = paced;
