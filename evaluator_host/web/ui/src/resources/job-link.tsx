import { call } from "../api/http";
import type { JobReport } from "../api/types";
import { useLoaded } from "../components/use-loaded";
import { Link } from "../router";
import { shortId } from "./format";

/** A link to a job, with its name once that has loaded. */
export function JobLink({ id }: { id: string }) {
  const found = useLoaded((signal) => call<JobReport>("GET", `/v1/jobs/${encodeURIComponent(id)}`, { signal }), [id]);
  return <Link to={`/jobs/${id}`}>{found.value?.title ?? `job ${shortId(id)}`}</Link>;
}
