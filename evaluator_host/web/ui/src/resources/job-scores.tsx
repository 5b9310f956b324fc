import type { JobReport, JobScore } from "../api/types";
import { Prose } from "../components/prose";
import { Link } from "../router";
import { count, rounded, oneLine, passRate, signed } from "./format";

const MOST = 4;

/** The scores of each evaluator of a job: mean, change since the previous job over the same rows, pass rate, failed rows. */
export function JobScores({ job }: { job: JobReport }) {
  const { scores } = job;
  return (
    <ul class="job-scores">
      {scores.slice(0, MOST).map((score) => (
        <li key={score.evaluator}>
          <span class="job-score-name" title={score.evaluator}>
            {oneLine(score.evaluator, 40)}
          </span>
          <strong class={score.failed > 0 || score.doubt !== null ? "warn" : ""} title={score.doubt ?? ""}>{rounded(score.mean)}</strong>
          <Against job={job} score={score} />
          <span class="muted">
            {score.pass_rate !== null && `${passRate(score, score.mean_rows)} passed`}
            {score.mean !== null && (score.failed > 0 || (score.mean_rows < score.rows && job.finished_at !== null)) && <span class={score.failed > 0 ? "warn" : ""}> {overRows(score, job)}</span>}
            {score.doubt !== null && <span class="warn"> <Prose text={oneLine(score.doubt, 80)} /></span>}
          </span>
        </li>
      ))}
      {scores.length > MOST && <li class="muted">and {scores.length - MOST} more</li>}
    </ul>
  );
}

/** The rows behind a mean, if some rows failed. */
export function overRows({ mean_rows, failed, rows }: JobScore, { config }: JobReport): string {
  return config.failures === "zero" && failed > 0 ? `${count(failed)} of ${count(rows)} rows failed, counted as 0` : `over ${count(mean_rows)} of ${count(rows)} rows`;
}

/** Explains why two means are not compared. */
export const NOT_COMPARED = "The previous job scored different rows, or counts failed rows differently, or these scores are doubtful, so the means are not compared. Compare row by row";

/** Whether the mean of the previous job cannot be compared with this one. */
export function notCompared({ previous, mean, change }: JobScore): boolean {
  return previous !== null && mean !== null && change === null;
}

/** The change since the previous job, as a link to the comparison. */
export function Against({ job, score }: { job: Pick<JobReport, "id">; score: JobScore }) {
  if (score.previous === null || score.mean === null) return <span />;
  if (notCompared(score))
    return (
      <Link to={`/compare/${score.previous}/${job.id}`} class="job-change muted" title={NOT_COMPARED}>
        compare with the previous job
      </Link>
    );
  const change = score.change ?? 0;
  const tone = change > 0 ? "pass" : change < 0 ? "fail" : "muted";
  const mark = change > 0 ? "▲" : "▼";
  return (
    <Link to={`/compare/${score.previous}/${job.id}`} class={`job-change ${tone}`} title="Compare with the previous job over the same rows">
      {change === 0 ? "no change" : `${mark} ${signed(change)}`}
    </Link>
  );
}
