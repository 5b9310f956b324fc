/** How the draft differs from the stored evaluator that it came from. */
import { call } from "../api/http";
import type { EvaluatorIn, EvaluatorReport, StoredEvaluator } from "../api/types";
import { useLoaded } from "../components/use-loaded";
import { type Draft, toEvaluator, withStored } from "./draft";

/** `replaced`: the code is other code, not an edit of the stored code. `unknown`: the host has not answered. */
export type StoredChange = "same" | "changed" | "replaced" | "unknown";

const ALIKE = 0.4; // minimum similarity to the earlier code for a change to count as an edit

export function useStoredChange(draft: Draft, evaluator: EvaluatorIn): StoredChange {
  const { stored } = draft;
  const ask = async (signal: AbortSignal) => (stored === null ? null : await call<EvaluatorReport>("GET", `/v1/evaluators/${encodeURIComponent(stored.name)}/versions/${stored.version}`, { signal }));
  const { value } = useLoaded(ask, [stored?.name, stored?.version]);
  if (stored === null || value === null || value.name !== stored.name || value.version !== stored.version) return "unknown";
  if (isSame(draft, evaluator, value.evaluator)) return "same";
  return similarity(value.evaluator.code, draft.code) < ALIKE ? "replaced" : "changed";
}

/** Whether the draft is the stored evaluator, with the same settings. */
export function isSame(draft: Draft, evaluator: EvaluatorIn, kept: StoredEvaluator): boolean {
  const { limits: storedLimits = {}, ...stored } = toEvaluator(withStored(draft, kept, draft.stored)).evaluator;
  const { limits = {}, ...mine } = evaluator;
  return sorted(stored) === sorted(mine) && Object.entries(limits).every(([name, value]) => storedLimits[name as keyof typeof limits] === value);
}

function sorted(evaluator: object): string {
  return JSON.stringify(Object.entries(evaluator).sort(([one], [other]) => one.localeCompare(other)));
}

/** How similar two pieces of code are, 0 to 1, by the pairs of characters in them. Signatures of `evaluate` do not count. */
function similarity(one: string, other: string): number {
  const [left, right] = [pairs(one), pairs(other)];
  const total = left.length + right.length;
  if (total === 0) return 1;
  const counts = new Map<string, number>();
  for (const pair of left) counts.set(pair, (counts.get(pair) ?? 0) + 1);
  let shared = 0;
  for (const pair of right) {
    const before = counts.get(pair) ?? 0;
    if (before > 0) shared += 1;
    counts.set(pair, before - 1);
  }
  return (2 * shared) / total;
}

function pairs(code: string): string[] {
  const text = code.replaceAll(/(def|function) evaluate\([^)]{0,4000}\)/g, "").replaceAll(/\s+/g, "");
  return [...text].slice(1).map((_, at) => text.slice(at, at + 2));
}
