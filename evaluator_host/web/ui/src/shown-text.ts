/** Makes the output of programs safe to show: without terminal codes and invisible characters. */

import { numberIn } from "./json";
import { shownBeside } from "./resources/format";

const ESCAPES = /\u001b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g;
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f]/g;
const DIRECTIONS = /[\u202a-\u202e\u2066-\u2069]/g;

/** Removes terminal codes and replaces other control characters and text direction marks with visible symbols. */
export function plain(text: string): string {
  return text
    .replace(/\r\n/g, "\n")
    .replace(ESCAPES, "")
    .replace(CONTROLS, (found) => (found === "\u007f" ? "\u2421" : String.fromCharCode(0x2400 + found.charCodeAt(0))))
    .replace(DIRECTIONS, "\ufffd");
}

/** A number with at most four decimals: 0.5, 12, 0.3333. */
export function shownNumber(given: number): string {
  const value = numberIn(given) ?? Number.NaN;
  if (Number.isInteger(value)) return Math.abs(value) < 1e15 ? String(value) : value.toExponential(4);
  const size = Math.abs(value);
  return size >= 1e6 || size < 1e-4 ? value.toExponential(3) : shownBeside(1, value, String(Number(value.toFixed(size >= 100 ? 2 : 4))));
}

/** A duration with its unit: 0.2 ms, 34 ms, 1.20 s. */
export function shownMs(value: number): string {
  if (value >= 1000) return `${(value / 1000).toFixed(2)} s`;
  return `${value >= 10 ? value.toFixed(0) : value.toFixed(1)} ms`;
}
