/** The filters of a job's rows in the address of its page, as parameters of the API. */
import type { JobReport } from "../api/types";

/** Whether the results of all evaluators are shown side by side. Then only a text narrows down the rows. */
export function isSideBySide(job: JobReport, query: URLSearchParams): boolean {
  return job.evaluators.length > 1 && query.get("side") === "all";
}

/** Filters of the rows that the page shows; null for a filter that is not set. `evaluator` is the one whose results are shown. */
export function filtersOf(job: JobReport, query: URLSearchParams, evaluator: string) {
  const none = { evaluator: null, status: null, passed: null, error: null, min_score: null, max_score: null, where: null };
  const text = query.get("text");
  if (isSideBySide(job, query)) return { ...none, text };
  const outcome = query.get("outcome") ?? "";
  const error = query.get("error");
  return {
    evaluator,
    status: error !== null ? "failed" : ["scored", "failed", "skipped"].includes(outcome) ? outcome : null,
    passed: outcome === "passed" ? true : outcome === "not-passed" ? false : null,
    error,
    min_score: query.get("min"),
    max_score: query.get("max"),
    text,
    where: query.get("where"),
  };
}
