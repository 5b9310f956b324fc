import { useEffect, useState } from "preact/hooks";
import { call } from "../api/http";
import { Button } from "../components/button";
import { Empty } from "../components/empty";
import { ErrorNote } from "../components/error-note";
import { Field, Select } from "../components/field";
import { Spinner } from "../components/spinner";
import { Table } from "../components/table";
import { useLoaded } from "../components/use-loaded";
import { DatasetName } from "../resources/dataset-name";
import { seconds, shortId } from "../resources/format";
import { JobProgress } from "../resources/job-parts";
import { JobScores } from "../resources/job-scores";
import { JobChip, PageHead, When } from "../resources/parts";
import { SampleButton } from "../resources/sample-button";
import { SavedFilters } from "../resources/saved-filters";
import { isFinal, type JobReport } from "../api/types";
import { Link, navigate, setQuery } from "../router";
import type { PageProps } from "../routes";

const PAGE = 50;
const AGAIN_MS = 2000;
const SEARCH_AFTER_MS = 250;
const MOST_COMPARED = 8;
const STATUSES = ["", "queued", "running", "paused", "completed", "failed", "cancelled"].map((value) => ({ value, label: value === "" ? "All statuses" : value }));

/** The list of jobs, newest first, with their scores. */
export default function JobsPage({ query }: PageProps) {
  const status = query.get("status") ?? "";
  const before = query.get("before");
  const search = query.get("find") ?? "";
  const found = useLoaded((signal) => call<JobReport[]>("GET", "/v1/jobs", { signal, query: { status, before, search, limit: PAGE } }), [status, before, search]);
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const jobs = found.value ?? [];
  const going = jobs.some((job) => !isFinal(job.status));
  useEffect(() => {
    if (!going || found.loading) return;
    const timer = setTimeout(found.reload, AGAIN_MS);
    return () => clearTimeout(timer);
  }, [going, found.loading]);
  const choose = (id: string) => setChosen(chosen.includes(id) ? chosen.filter((one) => one !== id) : [...chosen, id].slice(-MOST_COMPARED));
  const picked = jobs.filter((job) => chosen.includes(job.id)).map((job) => job.id).reverse();
  const compare = () => navigate(picked.length === 2 ? `/compare/${picked[0]}/${picked[1]}` : `/compare?jobs=${picked.join(",")}`);
  const filtered = status !== "" || before !== null || search !== "";
  return (
    <div class="page">
      <PageHead title="Jobs">
        <Search value={search} />
        <Select label="Status" bare value={status} onValue={(value) => setQuery({ status: value, before: null })} options={STATUSES} />
        <Button disabled={picked.length < 2} onClick={compare} title="Select two or more jobs over the same data set">
          Compare
        </Button>
        <Link to="/jobs/new" class="button button-primary">
          Start a job
        </Link>
      </PageHead>
      <SavedFilters list="jobs" names={["status", "find"]} />
      {found.error !== null && <ErrorNote error={found.error} onRetry={found.reload} />}
      {found.value === null && found.loading && <Spinner label="Loading jobs" />}
      {found.value?.length === 0 && (
        <Empty title={filtered ? "No matching jobs" : "No jobs yet"}>
          {filtered ? (
            <Button onClick={() => setQuery({ status: null, before: null, find: null })}>Show all jobs</Button>
          ) : (
            <>
              <p>
                A job scores every row of a <Link to="/datasets">data set</Link> with one or more <Link to="/evaluators">evaluators</Link>. If the host restarts, the job continues.
              </p>
              <SampleButton onLoaded={found.reload} />
            </>
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

function Search({ value }: { value: string }) {
  const [text, setText] = useState(value);
  useEffect(() => {
    if (text.trim() === value) return;
    const timer = setTimeout(() => setQuery({ find: text.trim() === "" ? null : text.trim(), before: null }), SEARCH_AFTER_MS);
    return () => clearTimeout(timer);
  }, [text]);
  useEffect(() => setText(value), [value]);
  return <Field label="Find a job" bare type="search" placeholder="Find a job…" title="By its name, its evaluators or its data set" value={text} onValue={setText} />;
}

function Jobs({ jobs, chosen, onChoose }: { jobs: readonly JobReport[]; chosen: readonly string[]; onChoose: (id: string) => void }) {
  const head = (
    <>
      <th scope="col" class="cell-check">
        <span class="visually-hidden">Compare</span>
      </th>
      <th scope="col">Job</th>
      <th scope="col">Status</th>
      <th scope="col">Scores</th>
      <th scope="col">Data set</th>
      <th scope="col">Started</th>
      <th scope="col" class="number">Running time</th>
    </>
  );
  return (
    <Table label="Jobs" head={head} class="table-brief jobs-table">
      {jobs.map((job) => (
        <tr key={job.id}>
          <td>
            <input type="checkbox" aria-label={`Compare job ${shortId(job.id)}`} checked={chosen.includes(job.id)} onChange={() => onChoose(job.id)} />
          </td>
          <th scope="row" class="cell-name">
            <Link to={`/jobs/${job.id}`}>{job.title}</Link>
            <p class="muted mono job-id">{shortId(job.id)}</p>
          </th>
          <td>
            <JobChip job={job} />
            {!isFinal(job.status) && <JobProgress job={job} bare />}
          </td>
          <td class="cell-line">
            <JobScores job={job} />
          </td>
          <td class="cell-dataset">
            <DatasetName job={job} />
          </td>
          <td>
            <When at={job.started_at ?? job.created_at} />
          </td>
          <td class="cell-minor number nowrap">{isFinal(job.status) ? seconds(job.running_s) : "–"}</td>
        </tr>
      ))}
    </Table>
  );
}
