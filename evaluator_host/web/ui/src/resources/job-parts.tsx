/** The progress of a job, and the buttons that its status allows. */
import { useEffect, useState } from "preact/hooks";
import { call, events, isAbort } from "../api/http";
import { Button } from "../components/button";
import { toast } from "../components/toasts";
import { Confirm } from "./confirm";
import { count, counted, rounded, seconds } from "./format";
import { isFinal, unitOf, type JobReport } from "../api/types";

const AGAIN_MS = 1500;

/** Returns a job, updated whenever it changes until it has ended. If the event stream breaks, it is opened again. */
export function useJob(id: string): { job: JobReport | null; error: unknown; refresh: () => void } {
  const [job, setJob] = useState<JobReport | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    const watch = async () => {
      const route = `/v1/jobs/${encodeURIComponent(id)}`;
      let last = await call<JobReport>("GET", route, { signal: abort.signal });
      setJob(last);
      setError(null);
      while (!isFinal(last.status) && !abort.signal.aborted) {
        try {
          for await (const { data } of events(`${route}/events`, { signal: abort.signal })) {
            last = data as JobReport;
            setJob(last);
          }
        } catch (problem) {
          if (isAbort(problem)) return;
        }
        if (isFinal(last.status) || abort.signal.aborted) return;
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
        last = await call<JobReport>("GET", route, { signal: abort.signal });
        setJob(last);
      }
    };
    watch().catch((problem: unknown) => !isAbort(problem) && setError(problem));
    return () => abort.abort();
  }, [id, turn]);
  return { job, error, refresh: () => setTurn((before) => before + 1) };
}

/** A progress bar, with its numbers in words. */
export function JobProgress({ job, bare = false }: { job: JobReport; bare?: boolean }) {
  const { rows, done, failed, rows_per_s, eta_s, generated } = job.progress;
  const share = rows === 0 ? 0 : done / rows;
  const words = [
    `${count(done)} of ${counted(rows, unitOf(job))}`,
    failed > 0 && `${count(failed)} failed`,
    !bare && generated !== null && !isFinal(job.status) && `${count(generated)} generated`,
    !bare && rows_per_s !== null && `${rows_per_s < 10 ? rounded(rows_per_s) : count(Math.round(rows_per_s))} ${unitOf(job)}s/s`,
    !bare && eta_s !== null && !isFinal(job.status) && `${seconds(eta_s)} left`,
  ].filter(Boolean);
  // no bar once all rows are done
  if (!bare && isFinal(job.status) && done === rows) return <p class="muted">{words.join(" · ")}</p>;
  return (
    <div class={bare ? "job-progress job-progress-bare" : "job-progress"}>
      <div class="progress" role="progressbar" aria-label="Progress" aria-valuenow={done} aria-valuemin={0} aria-valuemax={rows} aria-valuetext={words.join(", ")}>
        <div class={job.status === "failed" ? "progress-bar progress-failed" : "progress-bar"} style={{ width: `${share * 100}%` }} />
      </div>
      <p class="muted">{words.join(" · ")}</p>
    </div>
  );
}

/** Buttons to pause, resume or cancel, as the status allows; a failed job resumes with the remaining rows. */
export function JobVerbs({ job, onAsked }: { job: JobReport; onAsked: () => void }) {
  const [busy, setBusy] = useState<string | null>(null);
  const route = `/v1/jobs/${encodeURIComponent(job.id)}`;
  const ask = async (verb: string) => {
    setBusy(verb);
    try {
      await call("POST", `${route}/${verb}`);
    } catch (problem) {
      toast(problem instanceof Error ? problem.message : String(problem));
    }
    setBusy(null);
    onAsked();
  };
  const resume = (
    <Button kind="primary" busy={busy === "resume"} onClick={() => void ask("resume")}>
      Resume
    </Button>
  );
  if (job.status === "failed") return resume;
  if (isFinal(job.status)) return null;
  return (
    <>
      {job.status === "paused" ? (
        resume
      ) : (
        <Button busy={busy === "pause"} onClick={() => void ask("pause")}>
          Pause
        </Button>
      )}
      <Confirm label="Cancel" title="Cancel this job?" onConfirm={() => ask("cancel")}>
        The job stops and cannot be resumed. Rows that were scored keep their results.
      </Confirm>
    </>
  );
}
