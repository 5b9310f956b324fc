/** How far the evaluators of a job agree with labels that people gave. */
import { useState } from "preact/hooks";
import { call } from "../api/http";
import type { Agreement, JobReport, JobRowPage, LabelQueue } from "../api/types";
import { Button } from "../components/button";
import { ErrorNote } from "../components/error-note";
import { Select } from "../components/field";
import { Spinner } from "../components/spinner";
import { Table } from "../components/table";
import { useLoaded } from "../components/use-loaded";
import { isObject } from "../json";
import { AgreementTable } from "../resources/agreement";
import { count, percent, shortId } from "../resources/format";
import { PageHead, Panel } from "../resources/parts";
import { Link, setQuery } from "../router";
import type { PageProps } from "../routes";

export default function AgreementPage({ params, query }: PageProps) {
  const id = params["id"] ?? "";
  const found = useLoaded(
    (signal) =>
      Promise.all([
        call<JobRowPage>("GET", `/v1/jobs/${id}/rows`, { signal, query: { limit: 1 } }),
        call<LabelQueue[]>("GET", "/v1/label-queues", { signal, query: { job: id } }),
        call<JobReport>("GET", `/v1/jobs/${id}`, { signal }),
      ]),
    [id],
  );
  const [rows, queues, job] = found.value ?? [null, [], null];
  const columns = columnsOf(rows?.rows[0]?.row ?? {});
  const shown = query.get("label") ?? (queues.some((one) => one.labelled > 0) ? QUEUES : null);
  const [chosen, setChosen] = useState<string | null>(null);
  const label = chosen ?? shown ?? "";
  const known = [...(queues.length > 0 || label === QUEUES ? [{ value: QUEUES, label: `Label queues: ${queues.map((one) => one.name).join(", ") || "all of this host"}` }] : []), ...(queues.length > 1 ? queues.map(({ name }) => ({ value: QUEUES + name, label: `Label queue ${name}` })) : []), ...columns.map((value) => ({ value, label: `Column ${value}` }))];
  const options = known.some((one) => one.value === label) ? known : [{ value: label, label: label === "" ? "Choose…" : `Column ${label}` }, ...known];
  return (
    <div class="page">
      <PageHead title="Agreement with people" up={{ to: `/jobs/${id}`, label: job?.title ?? `Job ${shortId(id)}` }} />
      {found.error !== null && <ErrorNote error={found.error} onRetry={found.reload} />}
      <form
        class="record-bar line"
        onSubmit={(event) => {
          event.preventDefault();
          setQuery({ label });
        }}
      >
        <Select label="Labels from people" value={label} options={options} onValue={setChosen} />
        <Button kind="primary" type="submit" disabled={label === ""}>
          Compare
        </Button>
      </form>
      {found.value !== null && queues.length === 0 && (
        <p class="muted">
          Labels of people come from a column of the data set, or from a queue: <Link to={`/labels?new=1&job=${id}`}>label rows of this job</Link>.
        </p>
      )}
      {shown !== null && <Report key={shown} id={id} label={shown} />}
    </div>
  );
}

/** The option for labels that people gave in queues, in place of a column. With a name after it, the option for one queue. */
const QUEUES = "*";

/** The columns of a row; of a whole row also the fields of its inputs. */
function columnsOf(row: Record<string, unknown>): string[] {
  return Object.entries(row).flatMap(([name, value]) => (isObject(value) ? Object.keys(value).map((inner) => `${name}.${inner}`) : [name]));
}

function Report({ id, label }: { id: string; label: string }) {
  const found = useLoaded((signal) => call<Agreement[]>("GET", `/v1/jobs/${id}/agreement`, { signal, query: label.startsWith(QUEUES) ? { queue: label.slice(QUEUES.length) || null } : { label } }), [id, label]);
  if (found.error !== null) return <ErrorNote title="The labels cannot be compared" error={found.error} onRetry={found.reload} />;
  if (found.value === null) return <Spinner label="Comparing" />;
  return (
    <>
      <AgreementTable agreements={found.value} job={id} />
      {found.value.filter((one) => one.rows > 0).map((one) => (
        <Panel key={one.evaluator} title={`Labels of ${one.evaluator}`}>
          <Confusion report={one} />
        </Panel>
      ))}
    </>
  );
}

function Confusion({ report }: { report: Agreement }) {
  const names = report.classes.map((one) => one.name);
  const cells = new Map(report.confusion.map((one) => [JSON.stringify([one.human, one.judged]), one.rows]));
  const head = (
    <>
      <th scope="col">People said</th>
      {names.map((name) => (
        <th key={name} scope="col" class="number">
          Judged {name}
        </th>
      ))}
      <th scope="col" class="number">
        Found (recall)
      </th>
      <th scope="col" class="number">
        Confirmed (precision)
      </th>
    </>
  );
  return (
    <Table label={`Confusion matrix of ${report.evaluator}`} head={head} cards={false}>
      {report.classes.map((one) => (
        <tr key={one.name}>
          <th scope="row">{one.name}</th>
          {names.map((judged) => (
            <td key={judged} class="number">
              {judged === one.name ? <strong>{count(cells.get(JSON.stringify([one.name, judged])) ?? 0)}</strong> : count(cells.get(JSON.stringify([one.name, judged])) ?? 0)}
            </td>
          ))}
          <td class="number">{percent(one.recall)}</td>
          <td class="number">{percent(one.precision)}</td>
        </tr>
      ))}
    </Table>
  );
}
