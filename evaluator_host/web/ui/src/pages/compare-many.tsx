import { ApiError, call } from "../api/http";
import type { Comparison, JobReport, JobScore } from "../api/types";
import { Empty } from "../components/empty";
import { ErrorNote } from "../components/error-note";
import { Prose } from "../components/prose";
import { Spinner } from "../components/spinner";
import { Table } from "../components/table";
import { useLoaded } from "../components/use-loaded";
import { counted, rounded, oneLine, passRate, shortId, signed } from "../resources/format";
import { FindRows, useFoundRows } from "../resources/found-rows";
import { overRows } from "../resources/job-scores";
import { significance } from "../resources/significance";
import { PageHead, When } from "../resources/parts";
import { ChangedRows, RowsCompared, type Side } from "../resources/rows-compared";
import { Link } from "../router";
import type { PageProps } from "../routes";

/** Return an empty list if the error says that the jobs scored different rows. Throw any other error, so that it is shown. */
function ofOtherRows(error: unknown): Comparison[] {
  if (error instanceof ApiError && error.status === 422) return [];
  throw error;
}

/** Several jobs side by side: the scores of each evaluator, compared with the first job. */
export default function CompareManyPage({ query }: PageProps) {
  const ids = (query.get("jobs") ?? "").split(",").filter(Boolean);
  const found = useLoaded((signal) => Promise.all(ids.map((id) => call<JobReport>("GET", `/v1/jobs/${encodeURIComponent(id)}`, { signal }))), [ids.join(",")]);
  const jobs = found.value ?? [];
  const against = useLoaded((signal) => Promise.all(jobs.slice(1).map((job) => call<Comparison[]>("GET", `/v1/jobs/${jobs[0]!.id}/compare/${job.id}`, { signal }).catch(ofOtherRows))), [jobs.map(({ id }) => id).join(",")]);
  const comparisons = against.value ?? [];
  const changed = changedRows(comparisons.flat());
  // jobs that scored the same rows as the first job
  const alike = jobs.filter((_, at) => at === 0 || (comparisons[at - 1]?.length ?? 0) > 0);
  const sides = alike.map((job): Side => ({ job, label: job.name ?? shortId(job.id) }));
  const matching = useFoundRows(ids.at(-1) ?? "", null, query);
  const names = [...new Set(jobs.flatMap((job) => job.scores.map(({ evaluator }) => nameOf(evaluator))))];
  const datasets = new Set(jobs.map((job) => job.dataset));
  return (
    <div class="page">
      <PageHead title={`${counted(jobs.length, "job")} compared`} up={{ to: "/jobs", label: "Jobs" }} />
      {found.error !== null && <ErrorNote error={found.error} onRetry={found.reload} />}
      {against.error !== null && <ErrorNote error={against.error} onRetry={against.reload} />}
      {found.value === null && found.error === null && <Spinner label="Loading jobs" />}
      {ids.length === 0 && <Empty title="No jobs chosen">Select two or more jobs in the list of jobs.</Empty>}
      {datasets.size > 1 && <p class="note note-warn">These jobs did not score the same rows, so a difference between their means may come from the data. Only rows that they share are compared.</p>}
      {jobs.length > 0 && (
        <Table
          label="Scores of the jobs"
          head={
            <>
              <th scope="col">Job</th>
              <th scope="col">Data set</th>
              {names.map((name) => (
                <th key={name} scope="col">
                  {oneLine(name, 40)}
                </th>
              ))}
              <th scope="col">Differs in</th>
              <th scope="col">Rows</th>
            </>
          }
        >
          {jobs.map((job, index) => (
            <tr key={job.id}>
              <th scope="row" class="cell-name">
                <Link to={`/jobs/${job.id}`}>{job.title}</Link>
                <p class="muted mono job-id">{shortId(job.id)}</p>
                <span class="muted">
                  <When at={job.created_at} />
                </span>
              </th>
              <td>{job.dataset_name ?? <span class="muted">its own rows</span>}</td>
              {names.map((name) => (
                <td key={name}>
                  <Cell job={job} name={name} first={jobs[0]!} comparisons={comparisons[index - 1] ?? []} />
                </td>
              ))}
              <td class="muted">{changesOf(comparisons[index - 1] ?? []).join("; ")}</td>
              <td>
                {index > 0 && datasets.size === 1 && <Link to={`/compare/${jobs[0]!.id}/${job.id}`}>row by row</Link>}
                {index === 0 && <span class="muted">the others are compared with this one</span>}
              </td>
            </tr>
          ))}
        </Table>
      )}
      {changed.length > 0 && <FindRows query={query} found={matching} />}
      {changed.length > 0 && <ChangedRows title="Rows that differ from the first job" label="Rows that differ" rows={changed} sides={sides} only={matching.value?.rows ?? null} />}
      {sides.length > 0 && query.has("row") && <RowsCompared sides={sides} row={Number(query.get("row"))} rows={changed} />}
    </div>
  );
}

/** The rows that scored worse than in the first job, then those that scored better. */
function changedRows(comparisons: readonly Comparison[]): number[] {
  return [...new Set([...comparisons.flatMap((one) => one.regressions), ...comparisons.flatMap((one) => one.improvements)].map((one) => one.row))];
}

/** Differences between the first job and the others, as the host reports them. */
function changesOf(comparisons: readonly Comparison[]): string[] {
  return [...new Set(comparisons.flatMap((one) => one.changed).map(({ what, before, after }) => `${what}: ${before} → ${after}`))];
}

function nameOf(label: string): string {
  return label.replace(/@\d+$/, "");
}

/** An evaluator's scores in a job, one for each of its versions, each with its comparison with the first job. */
function Cell({ job, name, first, comparisons }: { job: JobReport; name: string; first: JobReport; comparisons: readonly Comparison[] }) {
  const scores = job.scores.filter(({ evaluator }) => nameOf(evaluator) === name);
  if (scores.length === 0) return <span class="muted">–</span>;
  return (
    <>
      {scores.map((score) => {
        const comparison = comparisons.find(({ after }) => after === score.evaluator);
        return <Score key={score.evaluator} job={job} score={score} before={first.scores.find(({ evaluator }) => evaluator === comparison?.before)} comparison={comparison} />;
      })}
    </>
  );
}

function Score({ job, score, before, comparison }: { job: JobReport; score: JobScore; before: JobScore | undefined; comparison: Comparison | undefined }) {
  const paired = comparison?.metrics.find(({ metric }) => metric === "score");
  const apart = score.doubt ?? comparison?.doubt ?? null; // why the two means are not compared
  const change = apart === null && !before?.doubt ? (paired?.difference ?? null) : null;
  return (
    <p>
      <strong class={score.failed > 0 || score.doubt !== null ? "warn" : ""}>{rounded(score.mean)}</strong> {change !== null && change !== 0 && <span class={change > 0 ? "pass" : "fail"}>{signed(change)}</span>}{" "}
      <span class="muted">
        {paired?.interval && `95 % ${signed(paired.interval[0])} to ${signed(paired.interval[1])}, `}
        {paired && `${significance(paired)}; `}
        {paired && change !== null && paired.n < Math.max(score.mean_rows, before?.mean_rows ?? 0) && `over ${counted(paired.n, "row")} with a score in both; `}
        {apart !== null && <span class="warn"><Prose text={oneLine(apart, 400)} />; </span>}
        {score.pass_rate !== null && `${passRate(score, score.mean_rows)} passed`} {score.mean !== null && (score.failed > 0 || score.mean_rows < score.rows) && overRows(score, job)} {score.evaluator}
      </span>
    </p>
  );
}
