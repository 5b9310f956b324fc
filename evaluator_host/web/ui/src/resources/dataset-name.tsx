import { Link } from "../router";
import type { JobReport } from "../api/types";

/** Whether a job's rows are not a stored data set: they were sent with the job or replaced since. */
export function hasOwnRows(job: JobReport): boolean {
  return /^ds_[0-9a-f]{16}$/.test(job.dataset);
}

/** Links to a job's data set. Rows sent with the job, or replaced since, have no stored data set. */
export function DatasetName({ job }: { job: JobReport }) {
  if (hasOwnRows(job)) return <span class="muted">{job.dataset_name === null ? "rows of its own" : `${job.dataset_name} (replaced or deleted since)`}</span>;
  return <Link to={`/datasets/${encodeURIComponent(job.dataset)}`}>{job.dataset}</Link>;
}
