import { call } from "../api/http";
import type { EvaluatorScore } from "../api/types";
import { Empty } from "../components/empty";
import { ErrorNote } from "../components/error-note";
import { Spinner } from "../components/spinner";
import { Table } from "../components/table";
import { useLoaded } from "../components/use-loaded";
import { Link } from "../router";
import { count, percent, shortId } from "./format";
import { Score, When } from "./parts";
import { Against } from "./job-scores";

/** What the versions of an evaluator scored, job by job: the jobs that used it, and how the mean moved. */
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
  const head = ["Job", "Version", "Data set", "Mean score", "Change", "Passed", "Rows", "Finished"];
  return (
    <Table label={`Jobs that used ${name}`} head={head.map((one) => <th key={one} scope="col">{one}</th>)}>
      {found.value.map((one) => (
        <tr key={`${one.job} ${one.version ?? ""}`}>
          <th scope="row" class="cell-name">
            <Link to={`/jobs/${one.job}`}>{one.name ?? shortId(one.job)}</Link>
          </th>
          <td>{one.version ?? "–"}</td>
          <td>{one.dataset ?? <span class="muted">rows of its own</span>}</td>
          <td>
            <Score value={one.score.mean} />
          </td>
          <td>
            <Against job={{ id: one.job }} score={one.score} />
          </td>
          <td>{percent(one.score.pass_rate)}</td>
          <td>
            {one.score.failed > 0 ? <span class="warn">{`${count(one.score.scored)} of ${count(one.score.rows)}`}</span> : count(one.score.scored)}
          </td>
          <td>
            <When at={one.finished_at} />
          </td>
        </tr>
      ))}
    </Table>
  );
}
