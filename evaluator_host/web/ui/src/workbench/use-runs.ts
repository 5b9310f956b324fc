/** Runs a draft, one run at a time, and keeps the results until the tab is closed. */
import { useRef, useState } from "preact/hooks";
import { call, isAbort } from "../api/http";
import type { EvaluatorIn, Result, Row } from "../api/types";
import { keepInTab, recallInTab } from "../storage";
import { type Draft, whole } from "./draft";
import { MOST_RUNS, type Run } from "./history";

interface Running {
  runs: readonly Run[];
  shown: Run | null;
  running: boolean;
  /** The error if the last run failed to start. */
  error: unknown;
  /** Starts a run; `settle` returns the draft with the packages that the host chose, and the result to show. */
  start: (draft: Draft, evaluator: EvaluatorIn, row: Row, settle?: (result: Result) => Pick<Run, "draft" | "result">) => void;
  /** Shows the existing result of a row of a job. */
  bring: (draft: Draft, result: Result) => void;
  stop: () => void;
  show: (run: Run) => void;
}

const LARGE = 200_000; // maximum characters of a returned value that older runs keep

const KEY = "runs";
const MOST_KEPT = 2_500_000; // maximum number of characters to store; a browser keeps about 5 MB for a tab

// Runs survive a visit to another page, and a reload.
let remembered: readonly Run[] = recalledRuns();
let counted = remembered[0]?.number ?? 0;

function recalledRuns(): readonly Run[] {
  try {
    const found = JSON.parse(recallInTab(KEY) ?? "[]") as Run[];
    return found.flatMap((run) => {
      const draft = whole(run.draft);
      return draft === null || typeof run.result?.status !== "string" ? [] : [{ ...run, draft }];
    });
  } catch {
    return [];
  }
}

function keepRuns(runs: readonly Run[]): void {
  const texts: string[] = [];
  let sum = 0;
  for (const run of runs) {
    const text = JSON.stringify({ ...lightened(run), draft: { ...run.draft, rows: [] } });
    sum += text.length;
    if (sum > MOST_KEPT) break;
    texts.push(text);
  }
  keepInTab(KEY, `[${texts.join(",")}]`);
}

export function useRuns(): Running {
  const [runs, setRuns] = useState<readonly Run[]>(remembered);
  const [shown, setShown] = useState<Run | null>(remembered[0] ?? null);
  const [running, setRunning] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const abort = useRef<AbortController | null>(null);
  const keep = (made: Pick<Run, "draft" | "result">) => {
    const run: Run = { number: ++counted, at: new Date().toISOString(), ...made };
    remembered = [run, ...remembered.map(lightened)].slice(0, MOST_RUNS);
    keepRuns(remembered);
    setRuns(remembered);
    setShown(run);
  };
  const start: Running["start"] = (draft, evaluator, row, settle = (result) => ({ draft, result })) => {
    abort.current?.abort();
    const own = new AbortController();
    abort.current = own;
    setRunning(true);
    setError(null);
    call<Result>("POST", "/v1/evaluate", { body: { evaluator, ...row }, signal: own.signal })
      .then((result) => keep(settle(result)))
      .catch((fault: unknown) => {
        if (!isAbort(fault)) setError(fault);
      })
      .finally(() => {
        if (abort.current === own) setRunning(false);
      });
  };
  return { runs, shown, running, error, start, bring: (draft, result) => keep({ draft, result }), stop: () => abort.current?.abort(), show: setShown };
}

/** An older run without its value, if that is large. */
function lightened(run: Run): Run {
  const { result } = run;
  if (result.value === null || typeof result.value !== "object" || (JSON.stringify(result.value)?.length ?? 0) < LARGE) return run;
  return { ...run, result: { ...result, value: "(too large to keep)" } };
}
