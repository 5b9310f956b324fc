/** The jobs that this browser started: the frame says when one of them has ended. */
import { call } from "../api/http";
import { isFinal, type JobReport } from "../api/types";
import { keep, recall } from "../storage";

const KEY = "watched-jobs";
const MOST = 20;

export function watchedJobs(): string[] {
  try {
    const found: unknown = JSON.parse(recall(KEY) ?? "[]");
    return Array.isArray(found) ? found.filter((one): one is string => typeof one === "string") : [];
  } catch {
    return [];
  }
}

/** Watch a job, so that any page can say when it has ended. */
export function watchJob(job: Pick<JobReport, "id">): void {
  keep(KEY, JSON.stringify([job.id, ...watchedJobs().filter((one) => one !== job.id)].slice(0, MOST)));
}

function forgetJob(id: string): void {
  keep(KEY, JSON.stringify(watchedJobs().filter((one) => one !== id)));
}

/** The watched jobs that have ended, each returned once. */
export async function endedJobs(): Promise<JobReport[]> {
  const ended: JobReport[] = [];
  for (const id of watchedJobs()) {
    const job = await call<JobReport>("GET", `/v1/jobs/${id}`).catch(() => null);
    if (job === null) forgetJob(id);
    else if (isFinal(job.status)) {
      forgetJob(id);
      ended.push(job);
    }
  }
  return ended;
}
