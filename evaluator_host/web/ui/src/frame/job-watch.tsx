import { useEffect } from "preact/hooks";
import { toast } from "../components/toasts";
import { counted, rounded } from "../resources/format";
import { endedJobs, watchedJobs } from "../resources/watched-jobs";
import { unitOf, type JobReport } from "../api/types";

const EVERY_MS = 4000;

/** Says on every page when a job that this browser started has ended. */
export function JobWatch() {
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout>;
    const look = async () => {
      if (!document.hidden && watchedJobs().length > 0) {
        for (const job of await endedJobs()) if (location.pathname !== `/jobs/${job.id}`) toast(said(job), { to: `/jobs/${job.id}`, label: "Open" });
      }
      timer = setTimeout(() => void look(), EVERY_MS);
    };
    timer = setTimeout(() => void look(), EVERY_MS);
    return () => clearTimeout(timer);
  }, []);
  return null;
}

function said(job: JobReport): string {
  const { failed } = job.progress;
  const means = job.scores.slice(0, 2).map(({ evaluator, mean, doubt }) => `${evaluator} ${rounded(mean)}${doubt === null ? "" : ", doubtful"}`);
  return [`${job.title} ${job.status}`, ...means, ...(failed > 0 ? [`${counted(failed, unitOf(job))} failed`] : [])].join(" · ");
}
