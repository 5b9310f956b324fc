import { Link } from "../router";
import type { JobReport } from "../api/types";

/** Whether a job's rows are not in a stored data set: they were sent with the job, or the data set was deleted. */
export function hasOwnRows(job: JobReport): boolean {
  return job.dataset_version === null;
}

/** Whether the data set of a job has a newer version now. */
export function isReplaced(job: JobReport): boolean {
  return job.dataset_version !== job.dataset_newest;
}

/** The data set of a job with the version that the job used: `quiz@1`; null if no stored data set has its rows. */
export function versionOf(job: JobReport): string | null {
  return hasOwnRows(job) ? null : `${job.dataset_name}@${job.dataset_version}`;
}

/** Links to a job's data set, or to the version of it that the job used. */
export function DatasetName({ job }: { job: JobReport }) {
  if (hasOwnRows(job)) return <span class="muted">{job.dataset_name === null ? "its own rows" : `${job.dataset_name} (deleted since)`}</span>;
  if (!isReplaced(job)) return <Link to={`/datasets/${encodeURIComponent(job.dataset)}`}>{job.dataset}</Link>;
  const version = versionOf(job)!;
  return (
    <>
      <Link to={`/datasets/${encodeURIComponent(version)}`}>{version}</Link> <span class="muted">(newest: {job.dataset_newest})</span>
    </>
  );
}
