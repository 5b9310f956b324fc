/** How far evaluators agree with labels of people: accuracy, kappa, and where they differ. */
import { ApiError, call } from "../api/http";
import { ErrorNote } from "../components/error-note";
import { Spinner } from "../components/spinner";
import { Table } from "../components/table";
import { useLoaded } from "../components/use-loaded";
import { Link } from "../router";
import { count, counted, rounded, NOTHING, percent } from "./format";
import { Panel } from "./parts";
import type { Agreement, LabelQueue } from "../api/types";

/** The agreement of a job's evaluators with the labels of a queue. */
export function QueueAgreement({ job, queue, stamp }: { job: string; queue: string; stamp: string }) {
  const found = useLoaded((signal) => call<Agreement[]>("GET", `/v1/jobs/${encodeURIComponent(job)}/agreement`, { signal, query: { queue } }), [job, queue, stamp]);
  if (found.error !== null) return <ErrorNote error={found.error} onRetry={found.reload} />;
  if (found.value === null) return <Spinner label="Comparing with the labels" />;
  if (found.value.every((one) => one.rows === 0)) return <p class="muted">No row has a label and a result yet.</p>;
  return (
    <>
      <AgreementTable agreements={found.value} job={job} />
      <p class="muted">
        <Link to={`/jobs/${job}/agreement`}>Labels and judgements as a matrix</Link>
      </p>
    </>
  );
}

/** The agreement with the labels of all queues; of each queue, if the queues ask people different questions. */
async function agreementsOf(job: string, queues: readonly LabelQueue[], signal: AbortSignal): Promise<Agreement[]> {
  const path = `/v1/jobs/${encodeURIComponent(job)}/agreement`;
  const none = (error: unknown): null => {
    if (error instanceof ApiError && error.status === 422) return null;
    throw error;
  };
  const together = await call<Agreement[]>("GET", path, { signal }).catch(none);
  const each = async () => Promise.all(queues.map(({ name }) => call<Agreement[]>("GET", path, { signal, query: { queue: name } }).catch(none)));
  return together ?? (await each()).flatMap((one) => one ?? []);
}

/** The agreement on the page of a job, if a label queue applies to the job. */
export function JobAgreement({ job }: { job: string }) {
  const found = useLoaded(async (signal) => {
    const queues = await call<LabelQueue[]>("GET", "/v1/label-queues", { signal, query: { job } });
    if (queues.every((one) => one.labelled === 0)) return { queues, agreements: [] };
    return { queues, agreements: await agreementsOf(job, queues.filter((one) => one.labelled > 0), signal) };
  }, [job]);
  if (found.value === null || found.value.agreements.length === 0) return null;
  const { queues, agreements } = found.value;
  return (
    <Panel title="Agreement with people" class="panel-stack">
      <AgreementTable agreements={agreements} job={job} />
      <p class="muted">
        Label queues:{" "}
        {queues.map((one, at) => (
          <span key={one.name}>
            {at > 0 && ", "}
            <Link to={`/labels/${encodeURIComponent(one.name)}`}>{one.name}</Link> ({count(one.labelled)} of {count(one.rows)} labelled)
          </span>
        ))}
        . <Link to={`/jobs/${job}/agreement`}>Labels and judgements as a matrix, and labels in a column</Link>
      </p>
    </Panel>
  );
}

function interval(given: readonly [number, number] | null, shown: (value: number) => string): string {
  return given === null ? "" : `, 95 % ${shown(given[0])} to ${shown(given[1])}`;
}

export function AgreementTable({ agreements, job }: { agreements: readonly Agreement[]; job: string }) {
  const head = ["Evaluator", "Labels", "Rows", "The same", "Kappa", "Where they differ"];
  return (
    <Table label="Agreement" head={head.map((one) => <th key={one} scope="col">{one}</th>)}>
      {agreements.map((one) => (
        <tr key={`${one.evaluator} ${one.label}`}>
          <th scope="row" class="cell-name">
            {one.evaluator}
          </th>
          <td>{one.label}</td>
          <td>
            {count(one.rows)}
            <span class="muted">{[one.left_out, one.note].map((text) => text && `, ${text}`)}</span>
          </td>
          <td>
            <strong>{one.rows === 0 ? NOTHING : percent(one.accuracy)}</strong><span class="muted">{interval(one.accuracy_interval, percent)}</span>
          </td>
          <td>
            <strong>{rounded(one.kappa)}</strong><span class="muted">{interval(one.kappa_interval, rounded)}</span>
          </td>
          <td class="cell-text"><Differences agreement={one} job={job} /></td>
        </tr>
      ))}
    </Table>
  );
}

const SHOWN = 3;

/** The most frequent differences, with links to their first rows. */
function Differences({ agreement: { confusion, evaluator }, job }: { agreement: Agreement; job: string }) {
  const cells = confusion.filter(({ human, judged, rows }) => human !== judged && rows > 0).sort((one, other) => other.rows - one.rows);
  if (cells.length === 0) return <span class="muted">nowhere</span>;
  return (
    <>
      {cells.slice(0, SHOWN).map(({ human, judged, rows, first = [] }, at) => (
        <span key={`${human} ${judged}`}>
          {at > 0 && "; "}
          {`${counted(rows, "row")}: people ${human}, evaluator ${judged}`}
          {first.map((row, place) => (
            <span key={row}>
              {place === 0 ? " (" : ", "}
              <Link to={`/jobs/${job}/rows/${row}?evaluator=${encodeURIComponent(evaluator)}`}>row {row}</Link>
              {place === first.length - 1 && (rows > first.length ? ", …)" : ")")}
            </span>
          ))}
        </span>
      ))}
    </>
  );
}
