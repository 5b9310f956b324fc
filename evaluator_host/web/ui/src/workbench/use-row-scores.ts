/** Scores the rows below the editor again after each change of the code or of a row. */
import { useEffect, useRef, useState } from "preact/hooks";
import { call, isAbort } from "../api/http";
import type { EvaluatorIn, Result } from "../api/types";
import type { TestRow } from "./test-rows";

const PAUSE_MS = 300; // milliseconds to wait after the last key

export interface RowScores {
  results: ReadonlyMap<string, Result>;
  /** The previous results by row, to show the effect of a change. */
  before: ReadonlyMap<string, Result>;
  running: boolean;
  /** Whether the code or a row has changed since the results arrived. */
  stale: boolean;
  /** Why the last try gave no results: the call failed, or the code does not load. */
  error: unknown;
  /** Why no score can be relied on. */
  doubt: string | null;
  tookMs: number | null;
  again: () => void;
}

type Seen = Pick<RowScores, "results" | "before" | "error" | "doubt" | "tookMs"> & { of: string };

const NONE: ReadonlyMap<string, Result> = new Map();
const NOTHING: Seen = { results: NONE, before: NONE, error: null, doubt: null, tookMs: null, of: "" };
const NOT_LOADED: ReadonlySet<string> = new Set(["syntax_error", "load_error", "entry_not_found", "entry_ambiguous"]);

/** Score `rows`. While `ready` is false (packages are being installed, or the code has a syntax error), the old results stay, marked as stale. */
export function useRowScores(evaluator: EvaluatorIn, rows: readonly TestRow[], { ready, live }: { ready: boolean; live: boolean }): RowScores {
  const [seen, setSeen] = useState<Seen>(NOTHING);
  const [running, setRunning] = useState(false);
  const [turn, setTurn] = useState(0);
  const asked = JSON.stringify([evaluator, rows.map(({ id, row }) => [id, row])]);
  const wanted = useRef(0);
  useEffect(() => {
    const forced = wanted.current !== turn;
    wanted.current = turn;
    if (rows.length === 0 || evaluator.code.trim() === "" || !ready || !(live || forced)) return;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      setRunning(true);
      score(evaluator, rows, abort.signal).then(
        ({ results, error, doubt, tookMs }) => {
          setRunning(false);
          setSeen((last) => (error === null ? { results, before: last.results, error: null, doubt, tookMs, of: asked } : { ...last, error }));
        },
        (error: unknown) => {
          if (isAbort(error)) return;
          setRunning(false);
          setSeen((last) => ({ ...last, error }));
        },
      );
    }, forced ? 0 : PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
      setRunning(false);
    };
  }, [asked, ready, live, turn]);
  const { of, ...shown } = seen;
  return { ...shown, running, stale: of !== asked, again: () => setTurn((before) => before + 1) };
}

async function score(evaluator: EvaluatorIn, rows: readonly TestRow[], signal: AbortSignal): Promise<{ results: Map<string, Result>; error: unknown; doubt: string | null; tookMs: number }> {
  const begun = performance.now();
  const { results, summary } = await call<{ results: Result[]; summary: { doubt: string | null } }>("POST", "/v1/evaluate/batch", { body: { evaluator, rows: rows.map(({ row }) => row) }, signal });
  const tookMs = performance.now() - begun;
  const first = results[0];
  const broken = first !== undefined && results.every(({ error }) => error !== null && NOT_LOADED.has(error.code) && error.message === first.error?.message);
  return { results: new Map(rows.map(({ id }, index) => [id, results[index]!])), error: broken ? first.error?.message : null, doubt: summary.doubt, tookMs };
}
