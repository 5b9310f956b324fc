/** The labels that a queue accepts, each with its keys. */
import type { LabelQueue } from "../api/types";

export interface LabelChoice {
  label: string;
  value: boolean | number | string;
  /** A digit, and a letter if one is free. */
  keys: readonly string[];
}

const TAKEN = new Set(["s", "j", "k", "u", "c"]); // keys for skip, next, previous, undo and comment
const STEPS = 5;

/** The choices of a task; for a score, a few steps from the lowest to the highest. */
export function choicesOf({ kind, choices, min, max }: LabelQueue["task"]): LabelChoice[] {
  if (kind === "passed") return withKeys([["Passed", true], ["Not passed", false]]);
  if (kind === "choice") return withKeys(choices.map((one) => [one, one]));
  const whole = Number.isInteger(min) && Number.isInteger(max) && max - min > 1 && max - min < 10;
  const steps = whole ? max - min + 1 : STEPS;
  const values = Array.from({ length: steps }, (_, at) => Number((min + ((max - min) * at) / (steps - 1)).toPrecision(6)));
  // the key of a whole score is the score itself
  return values.map((value, at) => ({ label: String(value), value, keys: [String(whole && min >= 0 && max <= 9 ? value : at + 1)] }));
}

function withKeys(given: readonly (readonly [string, boolean | string])[]): LabelChoice[] {
  const used = new Set(TAKEN);
  return given.map(([label, value], at) => {
    const letter = [...label.toLowerCase()].find((one) => /[a-z]/.test(one) && !used.has(one));
    if (letter !== undefined) used.add(letter);
    return { label, value, keys: [...(at < 9 ? [String(at + 1)] : []), ...(letter === undefined ? [] : [letter])] };
  });
}
