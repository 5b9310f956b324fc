import { useState } from "preact/hooks";
import { call } from "../api/http";
import { Empty } from "../components/empty";
import { ErrorNote } from "../components/error-note";
import { Field } from "../components/field";
import { Spinner } from "../components/spinner";
import { Table } from "../components/table";
import { useLoaded } from "../components/use-loaded";
import { counted, figure } from "../resources/format";
import { PageHead, When } from "../resources/parts";
import { LANGUAGES } from "../page-words";
import { Link, setQuery } from "../router";
import type { PageProps } from "../routes";
import type { EvaluatorReport, JobReport, JobScore } from "../api/types";

const JOBS = 200; // the newest, in which the last one of each evaluator is looked for

interface LastJob {
  job: JobReport;
  score: JobScore;
}

/** The list of stored evaluators. */
export default function EvaluatorsPage({ query }: PageProps) {
  const found = useLoaded((signal) => call<EvaluatorReport[]>("GET", "/v1/evaluators", { signal }), []);
  const jobs = useLoaded((signal) => call<JobReport[]>("GET", "/v1/jobs", { signal, query: { limit: JOBS } }), []);
  const [text, setText] = useState(query.get("find") ?? "");
  const words = text.trim().toLowerCase();
  const shown = (found.value ?? []).filter((one) => `${one.name} ${one.description} ${one.evaluator.language}`.toLowerCase().includes(words)).sort((one, other) => one.name.localeCompare(other.name, undefined, { numeric: true }));
  const find = (value: string) => {
    setText(value);
    setQuery({ find: value });
  };
  return (
    <div class="page">
      <PageHead title="Evaluators">
        {found.value !== null && found.value.length > 0 && <Field label="Find an evaluator" bare type="search" placeholder="Find…" value={text} onValue={find} />}
        <Link to="/judge" class="button button-plain">
          New judge
        </Link>
        <Link to="/" class="button button-primary">
          New evaluator
        </Link>
      </PageHead>
      {found.error !== null && <ErrorNote error={found.error} onRetry={found.reload} />}
      {found.value === null && found.loading && <Spinner label="Loading evaluators" />}
      {found.value?.length === 0 && (
        <Empty title="No stored evaluators yet">
          <p>
            Write one in the <Link to="/">workbench</Link> and save it under a name. Each save creates a version that never changes; jobs and live traces can use it.
          </p>
        </Empty>
      )}
      {shown.length > 0 && <Evaluators evaluators={shown} last={lastJobs(jobs.value ?? [])} />}
      {words !== "" && shown.length === 0 && found.value !== null && <Empty title={`No evaluator has “${text.trim()}” in its name or description`} />}
    </div>
  );
}

/** The newest job of each evaluator, by its name. */
function lastJobs(jobs: readonly JobReport[]): ReadonlyMap<string, LastJob> {
  const found = new Map<string, LastJob>();
  for (const job of jobs)
    for (const score of job.scores) {
      const name = /^(.*)@\d+$/.exec(score.evaluator)?.[1];
      if (name !== undefined && !found.has(name)) found.set(name, { job, score });
    }
  return found;
}

function Evaluators({ evaluators, last }: { evaluators: readonly EvaluatorReport[]; last: ReadonlyMap<string, LastJob> }) {
  const head = (
    <>
      <th scope="col">Name</th>
      <th scope="col" class="number">Version</th>
      <th scope="col">Language</th>
      <th scope="col">Contract</th>
      <th scope="col">Packages</th>
      <th scope="col">Description</th>
      <th scope="col">Last job</th>
      <th scope="col">Updated</th>
    </>
  );
  return (
    <Table label="Evaluators" head={head} class="table-brief">
      {evaluators.map((one) => (
        <tr key={one.name}>
          <th scope="row" class="cell-name">
            <Link to={`/evaluators/${encodeURIComponent(one.name)}`}>{one.name}</Link>
            {one.problem && <span class="chip chip-fail">does not load</span>}
          </th>
          <td class="number">
            <span class="brief-word">version </span>
            {one.version}
          </td>
          <td>{LANGUAGES[one.evaluator.language]}</td>
          <td class="cell-minor">{one.contract ?? <span class="muted">unknown</span>}</td>
          <td class="cell-minor nowrap" title={one.evaluator.packages.map(String).join("\n")}>
            {one.evaluator.packages.length === 0 ? <span class="muted">none</span> : counted(one.evaluator.packages.length, "pin")}
          </td>
          <td class={one.description === "" ? "cell-minor" : "cell-text"}>{one.description || <span class="muted">–</span>}</td>
          <td class="nowrap">
            <Last of={last.get(one.name)} />
          </td>
          <td class="cell-minor">
            <When at={one.created_at} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

function Last({ of }: { of: LastJob | undefined }) {
  if (of === undefined) return <span class="muted">–</span>;
  const { job, score } = of;
  return (
    <Link to={`/jobs/${job.id}`} title={`${score.evaluator}: the mean of the newest of the last ${JOBS} jobs`}>
      {score.mean !== null && <strong>{figure(score.mean)} </strong>}
      <When at={job.created_at} />
    </Link>
  );
}
