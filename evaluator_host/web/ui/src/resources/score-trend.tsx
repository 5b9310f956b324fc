import { useMemo, useState } from "preact/hooks";
import { call } from "../api/http";
import type { EvaluatorScore } from "../api/types";
import { Empty } from "../components/empty";
import { ErrorNote } from "../components/error-note";
import { Select } from "../components/field";
import { Spinner } from "../components/spinner";
import { Table } from "../components/table";
import { useLoaded } from "../components/use-loaded";
import { Link, navigate } from "../router";
import { seriesOf } from "./comparable";
import { count, counted, rounded, passRate, shortId } from "./format";
import { Panel, Score, When } from "./parts";
import { Plot } from "./plot";
import { Against } from "./job-scores";

/** The jobs that used an evaluator, with the mean of each, and the trend of the mean by version. */
export function ScoreTrend({ name }: { name: string }) {
  const found = useLoaded((signal) => call<EvaluatorScore[]>("GET", `/v1/evaluators/${encodeURIComponent(name)}/scores`, { signal, query: { limit: 200 } }), [name]);
  if (found.error !== null) return <ErrorNote error={found.error} onRetry={found.reload} />;
  if (found.value === null) return <Spinner label="Loading the jobs" />;
  if (found.value.length === 0) {
    return (
      <Empty title="No completed job used it yet">
        <Link to={`/jobs/new?evaluator=${encodeURIComponent(name)}`}>Start a job</Link>
      </Empty>
    );
  }
  const scores = found.value;
  const head = ["Job", "Version", "Data set", "Mean score", "Change", "Passed", "Rows", "Finished"];
  return (
    <>
      <Trend name={name} scores={scores} />
      <Table label={`Jobs that used ${name}`} head={head.map((one) => <th key={one} scope="col">{one}</th>)}>
        {scores.map((one) => (
          <tr key={`${one.job} ${one.version ?? ""}`}>
            <th scope="row" class="cell-name">
              <Link to={`/jobs/${one.job}`}>{one.name ?? shortId(one.job)}</Link>
            </th>
            <td>{one.version ?? "–"}</td>
            <td>{one.dataset ?? <span class="muted">its own rows</span>}</td>
            <td>
              {one.score.doubt === null ? <Score value={one.score.mean} /> : <span class="warn" title={one.score.doubt}>{rounded(one.score.mean)}, doubtful</span>}
            </td>
            <td>
              <Against job={{ id: one.job }} score={one.score} />
            </td>
            <td>{passRate(one.score, one.score.mean_rows)}</td>
            <td>
              {rowsOf(one) < one.score.rows ? <span class="warn">{`${count(rowsOf(one))} of ${count(one.score.rows)}`}</span> : count(rowsOf(one))}
            </td>
            <td>
              <When at={one.finished_at} />
            </td>
          </tr>
        ))}
      </Table>
    </>
  );
}

/** Rows with a score, without failed ones that count as 0. */
function rowsOf({ score }: EvaluatorScore): number {
  return Math.min(score.scored, score.mean_rows);
}

/** The mean over time, with a line for each version, for one data set, because means over other rows cannot be compared. */
function Trend({ name, scores }: { name: string; scores: readonly EvaluatorScore[] }) {
  const sets = [...new Set(scores.map((one) => one.dataset ?? ""))];
  const [chosen, setChosen] = useState<string | null>(null);
  const most = sets.reduce((best, one) => (jobsOver(scores, one).length > jobsOver(scores, best).length ? one : best), sets[0] ?? "");
  const dataset = chosen ?? most;
  const shown = useMemo(() => jobsOver(scores, dataset).toReversed(), [scores, dataset]);
  const drawing = useMemo(() => {
    const oldestFirst = scores.toReversed();
    const series = new Map(seriesOf(oldestFirst).map((number, at) => [oldestFirst[at]!, number]));
    const keyOf = (one: EvaluatorScore) => `${one.version ?? ""} ${series.get(one)}`;
    const lines = [...new Map(shown.map((one) => [keyOf(one), one.version]))].map(([key, version]) => ({ label: version === null ? name : `${name}@${version}`, values: shown.map((one) => (keyOf(one) === key ? one.score.mean : null)) }));
    return { kind: "trend" as const, labels: shown.map((one) => (one.finished_at === null ? "" : DAY.format(new Date(one.finished_at)))), lines, y: "mean score" };
  }, [shown, scores]);
  if (shown.length === 0 || scores.length < 2) return null;
  const choose = sets.length > 1 && <Select label="Data set" bare value={dataset} options={sets.map((one) => ({ value: one, label: one || "rows of their own" }))} onValue={setChosen} />;
  const open = (at: number) => shown[at] && navigate(`/jobs/${shown[at].job}`);
  return (
    <Panel title="Mean score over time" actions={choose}>
      <Plot
        name={`${name}-scores`}
        summary={`Mean scores of ${name} in ${shown.length} jobs over ${dataset || "rows of their own"}, the oldest first: ${counted(drawing.lines.length, "line")}`}
        drawing={drawing}
        header={["finished", "version", "mean", "pass rate", "rows"]}
        rows={shown.map((one) => [one.finished_at, one.version, one.score.mean, one.score.pass_rate, rowsOf(one)])}
        onRow={open}
      >
        A line for each version, broken between jobs that scored different rows. Jobs whose scores cannot be relied on are left out. Click a point to open its job.
      </Plot>
    </Panel>
  );
}

const DAY = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });

function jobsOver(scores: readonly EvaluatorScore[], dataset: string): EvaluatorScore[] {
  return scores.filter((one) => (one.dataset ?? "") === dataset && one.score.mean !== null && one.score.doubt === null);
}
