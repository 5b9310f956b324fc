/** Numbers, sizes, times and rows, as people read them. */
import { numberIn } from "../json";
import type { Result } from "../api/types";

const COUNTS = new Intl.NumberFormat("en-US");
const WHOLE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" }); // with the time zone
const DAY = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });
const SOON = new Intl.DateTimeFormat(undefined, { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZoneName: "short" });
const KILOBYTE = 1024;
const MINUTE_S = 60;
const HOUR_S = 60 * MINUTE_S;
const DAY_S = 24 * HOUR_S;

export const NOTHING = "–";
/** The heading of a column with row numbers; the row numbers of commands and of the API start at 0, too. */
export const ROW_HEADING = "Row (from 0)";

/** Formats a whole number: 10000 → 10,000. */
export function count(value: number): string {
  return COUNTS.format(value);
}

/** Formats a number with its noun: "1 row", "2 rows". */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** Formats a score or another number with four significant digits. */
export function rounded(value: number | null | undefined): string {
  const known = numberIn(value);
  return known === null ? NOTHING : significant(known);
}

function significant(value: number): string {
  if (Number.isInteger(value) && Math.abs(value) < 1e7) return String(value);
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e7)) return value.toExponential(3);
  return shownBeside(1, value, String(Number(size >= 1000 ? value.toFixed(1) : value.toPrecision(4))));
}

/** Returns `text`, which shows a number. If `text` looks like `whole`, but the number is only close to it, returns more digits: 0.99996. */
export function shownBeside(whole: number, value: number, text: string): string {
  const lacking = whole - Math.abs(value);
  if (Math.abs(Number(text)) !== whole || Math.abs(lacking) <= 1e-9) return text;
  return String(Math.sign(value) * Number((whole - Number(lacking.toPrecision(2))).toPrecision(12)));
}

/** Returns the greatest number below `value`. */
export function justBelow(value: number): number {
  if (value === 0) return -Number.MIN_VALUE;
  const bits = new BigInt64Array(new Float64Array([value]).buffer);
  bits[0] = bits[0]! - (value > 0 ? 1n : -1n);
  return new Float64Array(bits.buffer)[0]!;
}

/** Returns `after - before`, or 0 if that is at most a rounding error, as `types/bounds.py` does on the host. */
export function difference(before: number, after: number): number {
  return Math.abs(after - before) <= Math.max(1e-9 * Math.max(Math.abs(before), Math.abs(after)), 1e-12) ? 0 : after - before;
}

/** Formats a difference like `rounded`, with its sign. */
export function signed(value: number | null): string {
  const known = numberIn(value);
  return known === null ? NOTHING : `${known > 0 ? "+" : ""}${significant(known)}`.replace("-", "−");
}

export function percent(value: number | null): string {
  if (value === null) return NOTHING;
  const hundredth = value * 100;
  if (hundredth === 0 || hundredth === 100) return `${hundredth} %`;
  return `${hundredth < 0.05 ? Number(hundredth.toPrecision(2)) : shownBeside(100, hundredth, hundredth.toFixed(1))} %`;
}

/** A pass rate, with the number of rows behind it if these are not the `scored` ones: 100 % of 2 rows. */
export function passRate({ pass_rate, judged }: { pass_rate: number | null; judged: number }, scored: number): string {
  return pass_rate === null || judged === scored ? percent(pass_rate) : `${percent(pass_rate)} of ${counted(judged, "row")}`;
}

/** The 95 % interval of a pass rate: "40.1 % to 80.2 %". */
export function passInterval({ pass_interval }: { pass_interval: [number, number] | null }): string {
  return pass_interval === null ? NOTHING : pass_interval.map(percent).join(" to ");
}

/** A difference between two percentages, in percentage points. */
export function points(difference: number): string {
  const value = difference * 100;
  const shown = Math.abs(value) > 1e-9 && Math.abs(value) < 0.05 ? String(Number(value.toPrecision(2))) : value.toFixed(1);
  return `${value > 0 ? "+" : ""}${shown === "-0.0" ? "0.0" : shown} points`.replace("-", "−");
}

export function milliseconds(value: number | null | undefined): string {
  if (value === null || value === undefined) return NOTHING;
  if (value === 0) return "0 ms";
  if (value >= 1000) return seconds(value / 1000);
  return `${value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)} ms`;
}

export function seconds(value: number): string {
  if (value < MINUTE_S) return `${value < 10 ? Number(value.toFixed(1)) : value.toFixed(0)} s`;
  if (value < HOUR_S) return `${Math.floor(value / MINUTE_S)} min ${Math.floor(value % MINUTE_S)} s`;
  return `${Math.floor(value / HOUR_S)} h ${Math.floor((value % HOUR_S) / MINUTE_S)} min`;
}

/** Formats a number of bytes. A KB is 1,024 bytes, as in the host's settings. */
export function bytes(value: number): string {
  if (value < KILOBYTE) return `${value} B`;
  const units = ["KB", "MB", "GB", "TB"];
  let size = value / KILOBYTE;
  let at = 0;
  while (Math.round(size) >= KILOBYTE && at < units.length - 1) {
    size /= KILOBYTE;
    at += 1;
  }
  return `${size < 10 ? size.toFixed(1) : size.toFixed(0)} ${units[at]}`;
}

/** Formats a moment as how long ago it was, or as a date after a week. */
export function ago(iso: string, now = Date.now()): string {
  const passed = (now - Date.parse(iso)) / 1000;
  if (passed < 5) return "just now";
  if (passed < MINUTE_S) return `${Math.floor(passed)} s ago`;
  if (passed < HOUR_S) return `${Math.floor(passed / MINUTE_S)} min ago`;
  if (passed < DAY_S) return `${Math.floor(passed / HOUR_S)} h ago`;
  if (passed < 7 * DAY_S) return `${Math.floor(passed / DAY_S)} d ago`;
  return DAY.format(new Date(iso));
}

/** Formats a future time in the time zone of this browser: "Mon, Nov 30, 06:00 UTC". */
export function dayAndTime(iso: string): string {
  return SOON.format(new Date(iso));
}

export function moment(iso: string): string {
  return WHOLE.format(new Date(iso));
}

interface Titled {
  id: string;
  title: string;
  created_at: string;
}

/** The title of a job in a list of options, with its time and id if another job has the same title. */
export function titleAmong(job: Titled, jobs: readonly Titled[]): string {
  const again = jobs.some((one) => one.title === job.title && one.id !== job.id);
  return oneLine(job.title, 80) + (again ? `, ${moment(job.created_at)} (${shortId(job.id)})` : "");
}

/** Formats a value as one line of a table, truncated to `most` characters. */
export function oneLine(value: unknown, most = 120): string {
  const text = typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value);
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}

/** A row's inputs on one line: the columns by name, without JSON's brackets and quotes. */
export function columnsInLine(value: unknown, most = 400): string {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return oneLine(value, most);
  return oneLine(Object.entries(value).map(([name, one]) => `${name}: ${oneLine(one, most)}`).join(" · "), most);
}

/** A row's result in words: its error, with the type of the exception, or the reason for its score. */
export function wordsOf(result: Result): string {
  if (result.error === null) return result.reason ?? "";
  const { type, message } = result.error;
  return type === null || message.startsWith(type) ? message : `${type}: ${message}`;
}

/** Return the first characters of a job's id or of a digest, for display. */
export function shortId(id: string): string {
  return id.replace(/^(job_|sha256:)/, "").slice(0, 8);
}
