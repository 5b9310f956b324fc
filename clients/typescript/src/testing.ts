/** Assertions about evaluators, for `node:test`, vitest and any other test runner that counts a thrown error as a failure. */
import type { EvaluatorHost } from "./client.js";
import type { Evaluator, Result, Row } from "./types.js";

// tolerance for rounding errors in sums of floats; the comparisons below are negated, so that a bound of NaN always
// fails
const ROUNDING = 1e-9;

/** The expected score; `atLeast: 0.5` when nothing is given. */
export interface Expected {
  atLeast?: number;
  atMost?: number;
  /** The exact score, up to a `tolerance` (0.000001). */
  equal?: number;
  tolerance?: number;
  /** Whether the evaluator's threshold is met. */
  passed?: boolean;
}

/** Thrown when a score is not as expected; `result` is the whole result. */
export class ScoreAssertionError extends Error {
  constructor(message: string, readonly result: Result) {
    super(message);
    this.name = "ScoreAssertionError";
  }
}

/**
 * Evaluate a row and throw unless its score is as expected.
 * @returns the result, for further assertions.
 * @throws ScoreAssertionError with the score, the reason, the line of the evaluator that failed, and the warnings.
 */
export async function assertScore(host: EvaluatorHost, evaluator: Evaluator, row: Row, expected: Expected = {}): Promise<Result> {
  const result = await host.evaluate(evaluator, row);
  const wrong = fault(result, expected);
  const warnings = result.warnings.map(({ code, message, remedy }) => `\nwarning ${code}: ${message}${remedy ? `; ${remedy}` : ""}`);
  if (wrong !== null) throw new ScoreAssertionError(wrong + warnings.join(""), result);
  return result;
}

function fault(result: Result, expected: Expected): string | null {
  if (result.status !== "scored" || result.score === null) {
    const why = { failed: "the row failed", skipped: "the row was skipped", scored: "the evaluator returned none" }[result.status];
    const reason = result.error ? told(result.error) : result.reason;
    return `there is no score, because ${why}${reason ? `: ${reason}` : ""}`;
  }
  const { equal, tolerance = 1e-6, passed } = expected;
  const nothing = equal === undefined && passed === undefined && expected.atMost === undefined;
  const { atLeast = nothing ? 0.5 : undefined, atMost } = expected;
  const { score } = result;
  const because = result.reason ? `: ${result.reason}` : "";
  if (equal !== undefined && !(Math.abs(score - equal) <= tolerance)) return `the score is ${score}, not ${equal}${because}`;
  if (atLeast !== undefined && !(atLeast - score <= ROUNDING)) return `the score is ${score}, below ${atLeast}${because}`;
  if (atMost !== undefined && !(score - atMost <= ROUNDING)) return `the score is ${score}, above ${atMost}${because}`;
  if (passed !== undefined && result.passed === null) return `the row has no verdict, only the score ${score}${because}`;
  if (passed !== undefined && result.passed !== passed) return `the row ${result.passed ? "passed" : "did not pass"} with ${score}${because}`;
  return null;
}

function told({ code, message, line }: NonNullable<Result["error"]>): string {
  return `${code}: ${message}${line ? ` (line ${line})` : ""}`;
}
