import { call } from "../api/http";
import type { JobReport } from "../api/types";
import { useLoaded } from "../components/use-loaded";
import { Link } from "../router";
import { shortId } from "./format";

/** A link to a job, with its title once `job` is loaded. */
export function JobLink({ id, job }: { id: string; job: JobReport | undefined }) {
  return <Link to={`/jobs/${id}`}>{job?.title ?? `job ${shortId(id)}`}</Link>;
}

/** A link to a job, which loads the job for its title. */
export function LoadedJobLink({ id }: { id: string }) {
  const found = useLoaded((signal) => call<JobReport>("GET", `/v1/jobs/${encodeURIComponent(id)}`, { signal }), [id]);
  return <JobLink id={id} job={found.value ?? undefined} />;
}
