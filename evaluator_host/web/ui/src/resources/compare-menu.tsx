import { useState } from "preact/hooks";
import { call } from "../api/http";
import { Button } from "../components/button";
import { Dialog } from "../components/dialog";
import { ErrorNote } from "../components/error-note";
import { Spinner } from "../components/spinner";
import { useLoaded } from "../components/use-loaded";
import { Link } from "../router";
import { hasOwnRows, versionOf } from "./dataset-name";
import { ago, oneLine, shortId } from "./format";
import type { JobReport } from "../api/types";

/** A menu that opens the comparison with another job over any version of the same data set. */
export function CompareMenu({ job }: { job: JobReport }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button onClick={() => setOpen(true)}>Compare…</Button>
      {open && <Choice job={job} onClose={() => setOpen(false)} />}
    </>
  );
}

function Choice({ job, onClose }: { job: JobReport; onClose: () => void }) {
  const found = useLoaded((signal) => call<JobReport[]>("GET", "/v1/jobs", { signal, query: { limit: 200, search: job.dataset_name } }), [job.id]);
  const others = (found.value ?? []).filter((one) => one.id !== job.id && (one.dataset === job.dataset || (!hasOwnRows(one) && !hasOwnRows(job) && one.dataset_name === job.dataset_name)));
  const earlierFirst = (other: JobReport) => (other.created_at < job.created_at ? `/compare/${other.id}/${job.id}` : `/compare/${job.id}/${other.id}`);
  return (
    <Dialog title="Compare with another job" onClose={onClose}>
      {found.error !== null && <ErrorNote error={found.error} />}
      {found.value === null && found.loading && <Spinner label="Loading jobs" />}
      {found.value !== null && others.length === 0 && <p class="muted">{hasOwnRows(job) ? "No other job uses the same rows. To compare, upload them as a data set, and run two jobs over it." : `To compare, upload new answers under the name ${job.dataset_name}, or store a new version of the evaluator, and run the job again.`}</p>}
      {others.length > 0 && (
        <ul class="choices stack-tight">
          {others.map((other) => (
            <li key={other.id}>
              <Link to={earlierFirst(other)}>
                {other.title} <span class="muted mono">{shortId(other.id)}</span>
              </Link>
              <span class="muted">
                {[versionOf(other), oneLine(other.evaluators.join(", "), 60), other.status].filter(Boolean).join(", ")}, {ago(other.created_at)}
              </span>
            </li>
          ))}
        </ul>
      )}
    </Dialog>
  );
}
