/** Warnings that make the scores of a job doubtful, with their remedies. */
import { Prose } from "../components/prose";
import { Link } from "../router";
import type { EvaluatorStatistics, WarningCount } from "../api/types";
import { count } from "./format";

/** A card above the statistics of an evaluator: why no score can be relied on, and warnings with their remedies. */
export function JobWarnings({ job, statistics }: { job: string; statistics: EvaluatorStatistics }) {
  const { warnings, doubt } = statistics;
  const shown = warnings.filter((one) => one.doubtful);
  const others = warnings.filter((one) => !one.doubtful);
  const mends = new Set((doubt ? warnings : shown).map((one) => one.mend));
  if (doubt === null && shown.length === 0) return others.length > 0 ? <Others warnings={others} job={job} statistics={statistics} /> : null;
  return (
    <section class={doubt === null ? "note note-warn job-warnings" : "note note-error job-warnings"} aria-label="Warnings">
      <p class="strong">{doubt === null ? "Some scores are doubtful" : <Prose text={`You cannot rely on these scores: ${doubt}`} />}</p>
      <WarningCounts warnings={shown} job={job} evaluator={statistics.evaluator} />
      {others.length > 0 && <Others warnings={others} job={job} statistics={statistics} />}
      {(mends.has("mapping") || mends.has("code")) && (
        <p class="line">
          {mends.has("mapping") && (
            <Link to={`/jobs/new?from=${job}&mend=mapping`} class="button button-primary button-small">
              Fix the mapping and run again
            </Link>
          )}
          {mends.has("code") && first(shown, others) !== undefined && (
            <Link to={`/?job=${job}&row=${first(shown, others)}&evaluator=${encodeURIComponent(statistics.evaluator)}`} class="button button-plain button-small">
              Fix the code in the workbench
            </Link>
          )}
        </p>
      )}
    </section>
  );
}

/** The first row of a warning whose cause is in the code. */
function first(...lists: (readonly WarningCount[])[]): number | undefined {
  return lists.flat().find((one) => one.mend === "code")?.rows[0];
}

function Others({ warnings, job, statistics }: { warnings: readonly WarningCount[]; job: string; statistics: EvaluatorStatistics }) {
  return (
    <details class="job-warnings-others">
      <summary>{warnings.length === 1 ? "1 remark" : `${warnings.length} remarks`} on these rows</summary>
      <WarningCounts warnings={warnings} job={job} evaluator={statistics.evaluator} />
    </details>
  );
}

/** Warnings with the number of their rows, and links to the first ones. */
export function WarningCounts({ warnings, job, evaluator }: { warnings: readonly WarningCount[]; job: string; evaluator: string }) {
  if (warnings.length === 0) return null;
  return (
    <ul class="note-list">
      {warnings.map((one) => (
        <li key={one.code}>
          <span class={one.doubtful ? "chip chip-warn" : "chip"}>{one.code}</span> <strong>{one.count === 1 ? "1 row" : `${count(one.count)} rows`}</strong>: {one.varies && `for example row ${one.rows[0]}: `}
          <Prose text={one.message} />
          {one.remedy && (
            <>
              {"; "}
              <Prose text={one.remedy} />
            </>
          )}{" "}
          <span class="muted">
            {one.rows.map((row, at) => (
              <span key={row}>
                {at > 0 && ", "}
                <Link to={`/jobs/${job}/rows/${row}?evaluator=${encodeURIComponent(evaluator)}`}>row {row}</Link>
              </span>
            ))}
            {one.count > one.rows.length && ", …"}
          </span>
        </li>
      ))}
    </ul>
  );
}
