import { useState } from "preact/hooks";
import { call } from "../api/http";
import { Button } from "../components/button";
import { Dialog } from "../components/dialog";
import { ErrorNote } from "../components/error-note";
import { Spinner } from "../components/spinner";
import { useLoaded } from "../components/use-loaded";
import { Link } from "../router";
import { versionOf } from "./dataset-name";
import { ago, oneLine, shortId } from "./format";
import type { JobReport } from "../api/types";

/** A menu that opens the comparison with another job. */
export function CompareMenu({ job }: { job: JobReport }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button onClick={() => setOpen(true)}>Compare…</Button>
      {open && <Choice job={job} onClose={() => setOpen(false)} />}
    </>
  );
}

/** Names of the evaluators of a job, without their versions. */
function namesOf(job: JobReport): string[] {
  return job.evaluators.map((label) => label.replace(/@\d+$/, ""));
}

/** Whether two jobs score other data sets with different numbers of rows, so that the host cannot compare them. */
function rowsDiffer(one: JobReport, other: JobReport): boolean {
  const isWhole = ({ config }: JobReport) => config.limit_samples === null && config.shard === null;
  const rowsOf = ({ progress, evaluators }: JobReport) => progress.rows / evaluators.length;
  return one.dataset !== other.dataset && isWhole(one) && isWhole(other) && rowsOf(one) !== rowsOf(other);
}

/** The other jobs, latest first: those with a common evaluator before those without one, and last those that the host cannot compare. */
function offered(job: JobReport, found: readonly JobReport[]): JobReport[] {
  const names = new Set(namesOf(job));
  const rank = (other: JobReport) => (rowsDiffer(job, other) ? 2 : namesOf(other).some((name) => names.has(name)) ? 0 : 1);
  return found.filter(({ id }) => id !== job.id).sort((one, other) => rank(one) - rank(other) || other.created_at.localeCompare(one.created_at));
}

function Choice({ job, onClose }: { job: JobReport; onClose: () => void }) {
  const found = useLoaded((signal) => call<JobReport[]>("GET", "/v1/jobs", { signal, query: { limit: 200 } }), [job.id]);
  const others = offered(job, found.value ?? []);
  const earlierFirst = (other: JobReport) => (other.created_at < job.created_at ? `/compare/${other.id}/${job.id}` : `/compare/${job.id}/${other.id}`);
  return (
    <Dialog title="Compare with another job" onClose={onClose}>
      {found.error !== null && <ErrorNote error={found.error} />}
      {found.value === null && found.loading && <Spinner label="Loading jobs" />}
      {found.value !== null && others.length === 0 && <p class="muted">There is no other job yet. To compare, run a job over the same rows with other answers or another version of the evaluator.</p>}
      {others.length > 0 && (
        <ul class="choices stack-tight">
          {others.map((other) => (
            <li key={other.id}>
              <Link to={earlierFirst(other)}>
                {other.title} <span class="muted mono">{shortId(other.id)}</span>
              </Link>
              <span class="muted">
                {[versionOf(other), oneLine(other.evaluators.join(", "), 60), other.status, rowsDiffer(job, other) && "has a different number of rows"].filter(Boolean).join(", ")}, {ago(other.created_at)}
              </span>
            </li>
          ))}
        </ul>
      )}
    </Dialog>
  );
}
