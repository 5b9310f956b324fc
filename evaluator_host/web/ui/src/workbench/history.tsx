/** The runs of this tab, the newest first. */
import { shownMs, shownNumber } from "../shown-text";
import type { Result } from "../api/types";
import type { Draft } from "./draft";

export interface Run {
  number: number;
  /** Time of the run, in ISO 8601. */
  at: string;
  draft: Draft;
  result: Result;
}

export const MOST_RUNS = 50;

export function History({ runs, shown, onShow, onBring }: { runs: readonly Run[]; shown: number | null; onShow: (run: Run) => void; onBring: (run: Run) => void }) {
  if (runs.length < 2) return null;
  return (
    <section class="panel" aria-labelledby="history-title">
      <header class="panel-head">
        <h2 id="history-title">Runs</h2>
        <span class="muted">{runs.length === MOST_RUNS ? `the last ${MOST_RUNS}` : runs.length}</span>
      </header>
      <ol class="runs">
        {runs.map((run) => (
          <li key={run.number}>
            <button type="button" class="run" aria-pressed={run.number === shown} onClick={() => onShow(run)}>
              <span class={run.result.status === "failed" || run.result.passed === false ? "strong fail" : run.result.passed ? "strong pass" : "strong"}>
                {run.result.status === "failed" ? "failed" : run.result.score === null ? "–" : shownNumber(run.result.score)}
              </span>
              <span class="cut muted">{run.result.error?.code ?? run.result.evaluator.contract ?? ""}</span>
              <span class="muted">{shownMs(run.result.timing_ms.total)}</span>
              <time class="muted" dateTime={run.at}>
                {new Date(run.at).toLocaleTimeString()}
              </time>
            </button>
            <button type="button" class="link-button" aria-label={`Restore the code and row of run ${run.number}`} onClick={() => onBring(run)}>
              Restore
            </button>
          </li>
        ))}
      </ol>
    </section>
  );
}
