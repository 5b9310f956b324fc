/** A table of stored evaluators by jobs over one data set; a fallen score links to the comparison. */
import { useLayoutEffect, useRef } from "preact/hooks";
import { call } from "../api/http";
import { Empty } from "../components/empty";
import { ErrorNote } from "../components/error-note";
import { Select } from "../components/field";
import { Spinner } from "../components/spinner";
import { Table } from "../components/table";
import { useLoaded } from "../components/use-loaded";
import { Link, setQuery } from "../router";
import { seriesOf } from "./comparable";
import { counted, rounded, oneLine, signed } from "./format";
import { NOT_COMPARED, notCompared } from "./job-scores";
import { Segments, When } from "./parts";
import type { JobScore, ScoreHistory, ScoreLine } from "../api/types";

const JOBS = ["10", "30", "100"];
const [WIDTH, HEIGHT, EDGE] = [96, 24, 3]; // size of a line of means, in pixels

interface Props {
  dataset: string;
  query: URLSearchParams;
}

export function ScoresOverTime({ dataset, query }: Props) {
  const limit = JOBS.find((one) => one === query.get("jobs")) ?? "10";
  const fell = query.get("only") === "fell";
  const found = useLoaded((signal) => call<ScoreHistory>("GET", `/v1/datasets/${encodeURIComponent(dataset)}/scores`, { signal, query: { limit } }), [dataset, limit]);
  const history = found.value;
  const fallen = (history?.evaluators ?? []).filter(hasFallen);
  const apart = (history?.evaluators ?? []).filter((line) => isNotCompared(line)).length;
  const shown = fell ? fallen : (history?.evaluators ?? []);
  return (
    <>
      {found.error !== null && <ErrorNote error={found.error} onRetry={found.reload} />}
      {history === null && found.loading && <Spinner label="Loading the scores" />}
      {history?.evaluators.length === 0 && (
        <Empty title="No completed job with a stored evaluator yet">
          <p>Here each job over this data set has a column, and each evaluator has a line.</p>
          <Link to={`/jobs/new?dataset=${encodeURIComponent(dataset)}`} class="button">
            Start a job
          </Link>
        </Empty>
      )}
      {history !== null && history.evaluators.length > 0 && (
        <>
          <div class="filters line">
            <Segments
              label="Which evaluators"
              value={fell ? "fell" : "all"}
              options={[
                { value: "all", label: `All ${history.evaluators.length}` },
                { value: "fell", label: `Fell in the last job ${fallen.length}` },
              ]}
              onValue={(value) => setQuery({ only: value === "fell" ? "fell" : null })}
            />
            <Select label="Jobs" bare value={limit} onValue={(value) => setQuery({ jobs: value === "10" ? null : value })} options={JOBS.map((value) => ({ value, label: `Last ${value} jobs` }))} />
          </div>
          {apart > 0 && <p class="muted">{`${counted(apart, "evaluator")} not compared by the mean: the last two jobs scored different rows, or count failed rows differently, or the scores of the last one are doubtful. “compare” shows the difference row by row.`}</p>}
          {shown.length === 0 ? <Empty title="No evaluator’s score fell in its last job" /> : <Matrix history={history} lines={shown} />}
        </>
      )}
    </>
  );
}

function hasFallen({ scores }: ScoreLine): boolean {
  return (scores.findLast((score) => score !== null)?.change ?? 0) < 0;
}

function isNotCompared({ scores }: ScoreLine): boolean {
  const last = scores.findLast((score) => score !== null);
  return last !== null && last !== undefined && notCompared(last);
}

function Matrix({ history, lines }: { history: ScoreHistory; lines: readonly ScoreLine[] }) {
  const place = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const scrolled = place.current?.firstElementChild;
    if (scrolled) scrolled.scrollLeft = scrolled.scrollWidth; // the newest job is on the right
  }, [history.jobs.length]);
  const head = (
    <>
      <th scope="col">Evaluator</th>
      <th scope="col">Mean over time</th>
      {history.jobs.map((job) => (
        <th key={job.id} scope="col" class="number">
          <Link to={`/jobs/${job.id}`} title={job.title}>
            <When at={job.created_at} />
          </Link>
        </th>
      ))}
    </>
  );
  return (
    <div ref={place}>
      <Table label="Scores over time" head={head} class="history-table" cards={false}>
        {lines.map((line) => (
          <tr key={line.evaluator}>
            <th scope="row" class="cell-name">
              <Link to={`/evaluators/${encodeURIComponent(line.evaluator)}`}>{oneLine(line.evaluator, 40)}</Link>
            </th>
            <td>
              <Sparkline line={line} jobs={history.jobs} />
            </td>
            {history.jobs.map((job, at) => (
              <td key={job.id} class="number">
                <Cell job={job.id} score={line.scores[at] ?? null} />
              </td>
            ))}
          </tr>
        ))}
      </Table>
    </div>
  );
}

/** A mean that links to its job, and a change that links to the comparison with the previous job. */
function Cell({ job, score }: { job: string; score: JobScore | null }) {
  if (score === null) return <span class="muted" title="This job did not run the evaluator">–</span>;
  const doubtful = score.doubt !== null || score.failed > 0;
  const change = score.change ?? 0;
  return (
    <>
      <Link to={`/jobs/${job}?evaluator=${encodeURIComponent(score.evaluator)}`} class={doubtful ? "quiet-link warn" : "quiet-link"} title={[score.evaluator, score.doubt ?? (score.failed > 0 && `${counted(score.failed, "row")} failed`)].filter(Boolean).join(": ")}>
        {score.mean === null && score.failed > 0 ? "failed" : rounded(score.mean)}
      </Link>
      {notCompared(score) && (
        <Link to={`/compare/${score.previous}/${job}?evaluator=${encodeURIComponent(score.evaluator)}`} class="job-change muted" title={NOT_COMPARED}>
          compare
        </Link>
      )}
      {change !== 0 && (
        <Link to={`/compare/${score.previous}/${job}?evaluator=${encodeURIComponent(score.evaluator)}`} class={`job-change ${change > 0 ? "pass" : "fail"}`} title="Compare with the previous job over the same rows">
          {`${change > 0 ? "▲" : "▼"} ${signed(change)}`}
        </Link>
      )}
    </>
  );
}

/** A line through the means that can be relied on, oldest left, with a dot at the last one. It is broken between jobs that scored different rows. */
function Sparkline({ line, jobs }: { line: ScoreLine; jobs: ScoreHistory["jobs"] }) {
  const given = line.scores.flatMap((score, at) => (score === null ? [] : [{ at, score, job: jobs[at]!.id }]));
  const series = seriesOf(given);
  const known = given.flatMap(({ at, score: { mean, doubt } }, place) => (mean === null || doubt !== null ? [] : [{ at, mean, series: series[place]! }]));
  const last = known.at(-1);
  if (last === undefined) return null;
  const [low, high] = [Math.min(...known.map(({ mean }) => mean)), Math.max(...known.map(({ mean }) => mean))];
  const x = (at: number) => EDGE + (at / Math.max(1, jobs.length - 1)) * (WIDTH - 2 * EDGE);
  const y = (mean: number) => (high === low ? HEIGHT / 2 : HEIGHT - EDGE - ((mean - low) / (high - low)) * (HEIGHT - 2 * EDGE));
  const parts: (typeof known)[] = [];
  for (const [place, one] of known.entries()) {
    if (known[place - 1]?.series === one.series) parts.at(-1)!.push(one);
    else parts.push([one]);
  }
  const words = `${counted(known.length, "mean")}, ${rounded(low)} to ${rounded(high)}, the last one ${rounded(last.mean)}`;
  return (
    <svg class="sparkline" width={WIDTH} height={HEIGHT} role="img" aria-label={words}>
      <title>{words}</title>
      {parts.map((part) => (
        <polyline key={part[0]!.at} points={[part[0]!, ...part].map(({ at, mean }) => `${x(at).toFixed(1)},${y(mean).toFixed(1)}`).join(" ")} />
      ))}
      <circle cx={x(last.at)} cy={y(last.mean)} r={EDGE - 0.5} />
    </svg>
  );
}
