// How figures are written. 64-bit numbers come as strings, durations as "1.500s";
// a message that was not set is absent.

const whole = new Intl.NumberFormat('en');
const tenth = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });

export const number = (value) => Number(value ?? 0);
export const count = (value) => whole.format(number(value));
export const percent = (ppm) => `${(number(ppm) / 1e4).toFixed(1)} %`;

/** Seconds of a duration; null where it is absent. */
export function seconds(text) {
  return text === undefined || text === null ? null : Number.parseFloat(text);
}

export function duration(s) {
  if (s === null || Number.isNaN(s)) return '–';
  if (s === 0) return '0 s';
  if (s < 0.01) return `${(s * 1e3).toFixed(2)} ms`;
  if (s < 1) return `${Math.round(s * 1e3)} ms`;
  if (s < 10) return `${tenth.format(s)} s`;
  if (s < 60) return `${Math.floor(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

/** A time of day by the browser's clock, with the day where it is another one. */
export function clock(time) {
  const at = new Date(time);
  if (Number.isNaN(at.getTime())) return '–';
  const text = at.toLocaleTimeString('en-GB');
  const day = at.toLocaleDateString('en-CA');
  return day === new Date().toLocaleDateString('en-CA') ? text : `${day} ${text}`;
}

const units = new Map([[1, 's'], [60, 'min'], [3600, 'h'], [86400, 'd']]);

export function rate(given) {
  if (!given || number(given.amount) === 0) return '';
  const interval = seconds(given.interval) ?? 1;
  return `${count(given.amount)}/${units.get(interval) ?? duration(interval)}`;
}

export const perSecond = (milli) => `${tenth.format(number(milli) / 1e3)}/s`;
