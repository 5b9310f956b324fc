/** Expected results of rows, as people type them: `1`, `1 ± 0.05`, `0.4..0.6`, `>= 0.5`, `passed`, `not passed`, `fails`, `fails timeout`,
 * `label good`, several with `;` between them: the grammar of evaluator_host/platform/evaluators/cases.py. */
import type { Result } from "../api/types";
import { numberIn } from "../json";

export type Expectation =
  | { kind: "range"; low: number | null; high: number | null; text: string }
  | { kind: "passed"; passed: boolean }
  | { kind: "fails"; code: string | null }
  | { kind: "label"; label: string }
  | { kind: "all"; parts: Expectation[] }
  | { kind: "wrong"; message: string };

const NUMBER = "([+-]?(?:\\d+\\.?\\d*|\\.\\d+)(?:e[+-]?\\d+)?)";
const NEAR = new RegExp(`^=?\\s*${NUMBER}\\s*(?:(?:±|\\+-|\\+/-)\\s*${NUMBER})?$`, "i");
const BETWEEN = new RegExp(`^${NUMBER}\\s*(?:\\.\\.|to|–|…)\\s*${NUMBER}$`, "i");
const BOUND = new RegExp(`^(>=|≥|>|<=|≤|<)\\s*${NUMBER}$`, "i");
const EXACT = 1e-9; // tolerance for sums of floats

/** Read a typed expectation; null for an empty string. */
export function readExpectation(typed: string): Expectation | null {
  const text = typed.trim();
  if (text === "") return null;
  if (text.includes(";")) {
    const parts = text.split(";").map(readExpectation).filter((one) => one !== null);
    return parts.find((one) => one.kind === "wrong") ?? { kind: "all", parts };
  }
  const word = text.toLowerCase();
  if (["passed", "pass", "passes", "true", "✓"].includes(word)) return { kind: "passed", passed: true };
  if (["not passed", "not pass", "false", "✗"].includes(word)) return { kind: "passed", passed: false };
  if (["fails", "failed", "fail", "error"].includes(word)) return { kind: "fails", code: null };
  const [, named, rest = ""] = /^(fails|label)\s+(.+)$/i.exec(text) ?? [];
  if (named !== undefined) return named.toLowerCase() === "fails" ? { kind: "fails", code: rest } : { kind: "label", label: rest };
  const near = NEAR.exec(text);
  if (near) {
    const [score, tolerance] = [Number(near[1]), Number(near[2] ?? 0)];
    return { kind: "range", low: score - tolerance - EXACT, high: score + tolerance + EXACT, text };
  }
  const between = BETWEEN.exec(text);
  if (between) return { kind: "range", low: Number(between[1]) - EXACT, high: Number(between[2]) + EXACT, text };
  const bound = BOUND.exec(text);
  if (bound) {
    const [, sign = "", number] = bound;
    const value = Number(number) + ([">", "<=", "≤"].includes(sign) ? EXACT : -EXACT);
    return /[>≥]/.test(sign) ? { kind: "range", low: value, high: null, text } : { kind: "range", low: null, high: value, text };
  }
  return { kind: "wrong", message: "Write 1, 1 ± 0.05, 0.4..0.6, >= 0.5, passed, not passed, fails, fails timeout or label good." };
}

/** Why a result is not as expected; null if it is, or if nothing is expected. */
export function unmet(expectation: Expectation | null, result: Result): string | null {
  if (expectation === null || expectation.kind === "wrong") return null;
  const came = result.status === "failed" ? `failed with ${result.error?.code ?? "an error"}` : result.score === null ? "has no score" : `is ${exactly(result.score)}`;
  switch (expectation.kind) {
    case "all":
      return expectation.parts.map((part) => unmet(part, result)).find((why) => why !== null) ?? null;
    case "label":
      return result.label === expectation.label ? null : `expected the label ${expectation.label}, but it is ${result.label ?? "none"}`;
    case "fails":
      if (result.status === "failed" && expectation.code !== null && ![result.error?.code, result.error?.type].includes(expectation.code)) return `expected ${expectation.code}, but it ${came}`;
      return result.status === "failed" ? null : `expected to fail, but ${came === "has no score" ? "it did not" : `the score ${came}`}`;
    case "passed": {
      const word = expectation.passed ? "passed" : "not passed";
      return result.passed === expectation.passed ? null : `expected ${word}, but it ${result.passed === null ? (result.status === "failed" ? came : "has no verdict") : result.passed ? "passed" : "did not pass"}`;
    }
    case "range": {
      const holds = result.score !== null && result.status === "scored" && (expectation.low === null || result.score >= expectation.low) && (expectation.high === null || result.score <= expectation.high);
      return holds ? null : `expected ${expectation.text}, but ${result.status === "failed" ? "it" : "the score"} ${came}`;
    }
  }
}

/** A score with as many digits as are compared: 0.3 for 0.1 + 0.2. */
function exactly(score: number): string {
  const value = numberIn(score) ?? Number.NaN;
  const short = Number(value.toPrecision(12));
  return String(Math.abs(short - value) < EXACT / 10 ? short : value);
}

/** The expectation of exactly this result, in the form that people type. */
export function expectationOf(result: Result): string {
  if (result.status === "failed") return "fails";
  if (result.score !== null) return exactly(result.score);
  return result.passed === null ? "" : result.passed ? "passed" : "not passed";
}

/** The `expect` of a stored case, in the form that people type. */
export function expectationText(expect: unknown): string {
  if (typeof expect !== "object" || expect === null) return String(expect);
  const { score, tolerance, min, max, above, below, passed, label, error } = expect as Record<string, unknown>;
  const said = [
    typeof score === "number" && `${score}${tolerance ? ` ± ${String(tolerance)}` : ""}`,
    ...Object.entries({ ">=": min, "<=": max, ">": above, "<": below }).map(([sign, bound]) => typeof bound === "number" && `${sign} ${bound}`),
    typeof passed === "boolean" && (passed ? "passed" : "not passed"),
    typeof label === "string" && `label ${label}`,
    error !== undefined && error !== null && (error === true ? "fails" : `fails ${String(error)}`),
  ];
  return said.filter(Boolean).join("; ");
}
