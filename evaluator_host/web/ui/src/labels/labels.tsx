import { useState } from "preact/hooks";
import { call } from "../api/http";
import { Button } from "../components/button";
import { Empty } from "../components/empty";
import { ErrorNote } from "../components/error-note";
import { Spinner } from "../components/spinner";
import { Table } from "../components/table";
import { useLoaded } from "../components/use-loaded";
import { LoadedJobLink } from "../resources/job-link";
import { QueueDialog } from "./queue-dialog";
import { QueueProgress } from "./queue-progress";
import { PageHead, When } from "../resources/parts";
import type { LabelQueue } from "../api/types";
import { Link, setQuery } from "../router";
import type { PageProps } from "../routes";

/** The list of label queues. */
export default function LabelsPage({ query }: PageProps) {
  const found = useLoaded((signal) => call<LabelQueue[]>("GET", "/v1/label-queues", { signal }), []);
  const [adding, setAdding] = useState(query.has("new"));
  const close = () => {
    setAdding(false);
    setQuery({ new: null, job: null, rows: null, dataset: null });
  };
  const head = ["Queue", "Rows of", "A label is", "Progress", "People", "Created"];
  return (
    <div class="page">
      <PageHead title="Review">
        <Button kind="primary" onClick={() => setAdding(true)}>
          New queue
        </Button>
      </PageHead>
      {found.error !== null && <ErrorNote error={found.error} onRetry={found.reload} />}
      {found.value === null && found.loading && <Spinner label="Loading label queues" />}
      {found.value?.length === 0 && (
        <Empty title="No label queues yet">
          <p>A queue shows rows of a job or of a data set to people, one at a time. The labels then show how far each evaluator agrees with these people.</p>
          <Button onClick={() => setAdding(true)}>Make one</Button>
        </Empty>
      )}
      {found.value !== null && found.value.length > 0 && (
        <Table label="Label queues" head={head.map((one) => <th key={one} scope="col">{one}</th>)}>
          {found.value.map((one) => (
            <tr key={one.name}>
              <th scope="row" class="cell-name">
                <Link to={`/labels/${encodeURIComponent(one.name)}`}>{one.name}</Link>
                {one.waiting === 0 && <span class="chip chip-pass">done</span>}
              </th>
              <td>
                <QueueSource queue={one} />
              </td>
              <td class="cell-text">{kindInWords(one)}</td>
              <td class="cell-progress">
                <QueueProgress queue={one} />
              </td>
              <td class="cell-text">{one.people.map(({ name }) => name ?? "without a name").join(", ") || <span class="muted">nobody yet</span>}</td>
              <td>
                <When at={one.created_at} />
              </td>
            </tr>
          ))}
        </Table>
      )}
      {adding && <QueueDialog query={query} onClose={close} />}
    </div>
  );
}

export function QueueSource({ queue }: { queue: LabelQueue }) {
  if (queue.job !== null) return <LoadedJobLink id={queue.job} />;
  return queue.dataset === null ? <span class="muted">a deleted data set</span> : <Link to={`/datasets/${encodeURIComponent(queue.dataset)}`}>{queue.dataset}</Link>;
}

function kindInWords({ task }: LabelQueue): string {
  if (task.kind === "passed") return "passed or not";
  return task.kind === "score" ? `a score from ${task.min} to ${task.max}` : `one of ${task.choices.join(", ")}`;
}
