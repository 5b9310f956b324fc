import { useEffect, useState } from "preact/hooks";
import { call } from "../api/http";
import { Button } from "../components/button";
import { Empty } from "../components/empty";
import { ErrorNote } from "../components/error-note";
import { Select } from "../components/field";
import { Spinner } from "../components/spinner";
import { Table } from "../components/table";
import { useLoaded } from "../components/use-loaded";
import { DatasetName } from "../resources/dataset-name";
import { oneLine, seconds, shortId } from "../resources/format";
import { JobProgress } from "../resources/job-parts";
import { PageHead, StatusChip, When } from "../resources/parts";
import { isFinal, type JobReport } from "../api/types";
import { Link, navigate, setQuery } from "../router";
import type { PageProps } from "../routes";

const PAGE = 50;
const AGAIN_MS = 2000;
const STATUSES = ["", "queued", "running", "paused", "completed", "failed", "cancelled"].map((value) => ({ value, label: value === "" ? "All statuses" : value }));

/** Jobs, the newest first. */
export default function JobsPage({ query }: PageProps) {
  const status = query.get("status") ?? "";
  const before = query.get("before");
  const found = useLoaded((signal) => call<JobReport[]>("GET", "/v1/jobs", { signal, query: { status, before, limit: PAGE } }), [status, before]);
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const jobs = found.value ?? [];
  const going = jobs.some((job) => !isFinal(job.status));
  useEffect(() => {
    if (!going || found.loading) return;
    const timer = setTimeout(found.reload, AGAIN_MS);
    return () => clearTimeout(timer);
  }, [going, found.loading]);
  const choose = (id: string) => setChosen(chosen.includes(id) ? chosen.filter((one) => one !== id) : [...chosen, id].slice(-2));
  const pair = jobs.filter((job) => chosen.includes(job.id)).map((job) => job.id);
  const filtered = status !== "" || before !== null;
  return (
    <div class="page">
      <PageHead title="Jobs">
        <Select label="Status" bare value={status} onValue={(value) => setQuery({ status: value, before: null })} options={STATUSES} />
        <Button disabled={pair.length !== 2} onClick={() => navigate(`/compare/${pair[1]}/${pair[0]}`)} title="Select two jobs over the same data set">
          Compare
        </Button>
        <Link to="/jobs/new" class="button button-primary">
          Start a job
        </Link>
      </PageHead>
      {found.error !== null && <ErrorNote error={found.error} onRetry={found.reload} />}
      {found.value === null && found.loading && <Spinner label="Loading jobs" />}
      {found.value?.length === 0 && (
        <Empty title={filtered ? "No matching jobs" : "No jobs yet"}>
          {filtered ? (
            <Button onClick={() => setQuery({ status: null, before: null })}>Show all jobs</Button>
          ) : (
            <p>
              A job scores every row of a <Link to="/datasets">data set</Link> with one or more <Link to="/evaluators">evaluators</Link>. If the host restarts, the job continues.
            </p>
          )}
        </Empty>
      )}
      {jobs.length > 0 && <Jobs jobs={jobs} chosen={chosen} onChoose={choose} />}
      {(jobs.length === PAGE || before !== null) && (
        <nav class="pager" aria-label="Pages of jobs">
          <Button small disabled={before === null} onClick={() => setQuery({ before: null })}>
            « Newest
          </Button>
          <Button small disabled={jobs.length < PAGE} onClick={() => setQuery({ before: jobs.at(-1)?.created_at ?? null })}>
            Older ›
          </Button>
        </nav>
      )}
    </div>
  );
}

function Jobs({ jobs, chosen, onChoose }: { jobs: readonly JobReport[]; chosen: readonly string[]; onChoose: (id: string) => void }) {
  const head = (
    <>
      <th scope="col" class="cell-check">
        <span class="visually-hidden">Compare</span>
      </th>
      <th scope="col">Job</th>
      <th scope="col">Status</th>
      <th scope="col">Evaluators</th>
      <th scope="col">Data set</th>
      <th scope="col" class="cell-progress">Progress</th>
      <th scope="col">Started</th>
      <th scope="col" class="number">Duration</th>
    </>
  );
  return (
    <Table label="Jobs" head={head}>
      {jobs.map((job) => (
        <tr key={job.id}>
          <td>
            <input type="checkbox" aria-label={`Compare job ${shortId(job.id)}`} checked={chosen.includes(job.id)} onChange={() => onChoose(job.id)} />
          </td>
          <th scope="row" class="mono nowrap">
            <Link to={`/jobs/${job.id}`}>{shortId(job.id)}</Link>
          </th>
          <td>
            <StatusChip status={job.status} />
          </td>
          <td class="cell-text">{oneLine(job.evaluators.join(", "), 90)}</td>
          <td class="cell-text"><DatasetName job={job} /></td>
          <td class="cell-progress">
            <JobProgress job={job} bare />
          </td>
          <td>
            <When at={job.started_at ?? job.created_at} />
          </td>
          <td class="number nowrap">{job.started_at && job.finished_at ? seconds((Date.parse(job.finished_at) - Date.parse(job.started_at)) / 1000) : "–"}</td>
        </tr>
      ))}
    </Table>
  );
}
