/** Runs a draft, one run at a time, and keeps the results while the page is open. */
import { useRef, useState } from "preact/hooks";
import { call, isAbort } from "../api/http";
import type { EvaluatorIn, Result, Row } from "../api/types";
import type { Draft } from "./draft";
import { MOST_RUNS, type Run } from "./history";

interface Running {
  runs: readonly Run[];
  shown: Run | null;
  running: boolean;
  /** Why the last one did not run. */
  error: unknown;
  start: (draft: Draft, evaluator: EvaluatorIn, row: Row) => void;
  stop: () => void;
  show: (run: Run) => void;
}

const LARGE = 200_000; // characters; one result of a megabyte is kept, thirty are not

// They outlive a visit to another page.
let remembered: readonly Run[] = [];
let counted = 0;

export function useRuns(): Running {
  const [runs, setRuns] = useState<readonly Run[]>(remembered);
  const [shown, setShown] = useState<Run | null>(remembered[0] ?? null);
  const [running, setRunning] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const abort = useRef<AbortController | null>(null);
  const start = (draft: Draft, evaluator: EvaluatorIn, row: Row) => {
    abort.current?.abort();
    const own = new AbortController();
    abort.current = own;
    setRunning(true);
    setError(null);
    call<Result>("POST", "/v1/evaluate", { body: { evaluator, ...row }, signal: own.signal })
      .then((result) => {
        const run: Run = { number: ++counted, at: new Date(), draft, result };
        remembered = [run, ...remembered.map(lightened)].slice(0, MOST_RUNS);
        setRuns(remembered);
        setShown(run);
      })
      .catch((fault: unknown) => {
        if (!isAbort(fault)) setError(fault);
      })
      .finally(() => {
        if (abort.current === own) setRunning(false);
      });
  };
  return { runs, shown, running, error, start, stop: () => abort.current?.abort(), show: setShown };
}

/** An older run without a value that is large. */
function lightened(run: Run): Run {
  const { result } = run;
  if (result.value === null || typeof result.value !== "object" || (JSON.stringify(result.value)?.length ?? 0) < LARGE) return run;
  return { ...run, result: { ...result, value: "(too large to keep)" } };
}
