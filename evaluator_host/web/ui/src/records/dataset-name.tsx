import { Link } from "../router";
import type { JobReport } from "../api/types";

/** Whether a job's rows have no name: it brought them along, or they were replaced since. */
export function hasOwnRows(job: JobReport): boolean {
  return /^ds_[0-9a-f]{16}$/.test(job.dataset);
}

/** A job's data set by name; rows that it brought along, or that were replaced since, have none. */
export function DatasetName({ job }: { job: JobReport }) {
  if (hasOwnRows(job)) return <span class="muted">not a stored data set</span>;
  return <Link to={`/datasets/${encodeURIComponent(job.dataset)}`}>{job.dataset}</Link>;
}
