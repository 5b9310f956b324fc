import { useEffect, useState } from "preact/hooks";
import { call } from "../api/http";
import { ErrorNote } from "../components/error-note";
import { Button } from "../components/button";
import { Dialog } from "../components/dialog";
import { Field, Select } from "../components/field";
import { Menu, MenuItem, MenuLine, MenuLink } from "../components/menu";
import { Spinner } from "../components/spinner";
import { toast } from "../components/toasts";
import { useAction } from "../components/use-action";
import { useLoaded } from "../components/use-loaded";
import { JobAgreement } from "../resources/agreement";
import { CompareMenu } from "../resources/compare-menu";
import { ConfirmDialog } from "../resources/confirm";
import { DownloadDialog } from "../resources/download-dialog";
import { EveryEvaluator, FewMetrics, Headline, MoreStatistics } from "../resources/statistics";
import { JobFacts } from "../resources/job-facts";
import { JobProgress, JobVerbs, useJob } from "../resources/job-parts";
import { JobWarnings } from "../resources/job-warnings";
import { JobRows } from "../resources/job-rows";
import { shortId } from "../resources/format";
import { NotThere } from "../resources/not-there";
import { JobChip, PageHead } from "../resources/parts";
import { isFinal, type EvaluatorStatistics, type JobStatistics, type JobReport, type JobScore } from "../api/types";
import { useHas } from "../host";
import { Link, navigate, setQuery } from "../router";
import type { PageProps } from "../routes";

const STATISTICS_EVERY_MS = 2000;
const FEW = 8; // number of evaluators to list at first

/** One job: its progress, statistics and rows. */
export default function JobPage({ params, query }: PageProps) {
  const id = params["id"] ?? "";
  const { job, error, refresh } = useJob(id);
  const has = useHas();
  const up = { to: "/jobs", label: "Jobs" };
  if (job === null) {
    return (
      <div class="page">
        <PageHead title={`Job ${shortId(id)}`} up={up} />
        {error === null ? <Spinner label="Loading the job" /> : <NotThere error={error} onRetry={refresh} list={{ to: "/jobs", label: "All jobs" }} />}
      </div>
    );
  }
  return (
    <div class="page">
      <PageHead title={job.title} up={up} mark={<><JobChip job={job} /><Rename job={job} onRenamed={refresh} /></>}>
        <JobVerbs job={job} onAsked={refresh} />
        <CompareMenu job={job} />
        <Link to={`/jobs/new?from=${job.id}`} class="button button-plain">
          Run again
        </Link>
        {has("schedules") && (
          <Link to={`/jobs/new?from=${job.id}&schedule=1`} class="button button-plain" title="Run it every week, day or hour">
            Schedule…
          </Link>
        )}
        <MoreActions job={job} query={query} />
      </PageHead>
      <JobFacts job={job} />
      <JobProgress job={job} />
      {error !== null && <ErrorNote title="Live updates have stopped" error={error} onRetry={refresh} />}
      {job.error !== null && (
        <div class="note note-error" role="alert">
          <p class="strong">The job failed: {job.error.code}</p>
          <p class="pre-wrap">{job.error.message}</p>
        </div>
      )}
      <Results job={job} query={query} />
    </div>
  );
}

/** A field to name or rename the job. */
function Rename({ job, onRenamed }: { job: JobReport; onRenamed: () => void }) {
  const [name, setName] = useState<string | null>(null);
  const { busy, error, run } = useAction();
  const save = () =>
    run(async () => {
      await call("PATCH", `/v1/jobs/${job.id}`, { body: { name: name?.trim() || null } });
      setName(null);
      onRenamed();
    });
  return (
    <>
      <Button kind="quiet" small onClick={() => setName(job.name ?? "")}>
        {job.name === null ? "Name it…" : "Rename…"}
      </Button>
      {name !== null && (
        <Dialog
          title="Name of the job"
          onClose={() => setName(null)}
          onSubmit={() => void save()}
          actions={
            <Button kind="primary" type="submit" busy={busy}>
              Save
            </Button>
          }
        >
          <Field label="Name" value={name} onValue={setName} placeholder={`Job ${shortId(job.id)}`} autocomplete="off" />
          {error !== null && <ErrorNote error={error} />}
        </Dialog>
      )}
    </>
  );
}

/** A menu of rarer actions: labels, downloads, deletion. */
function MoreActions({ job, query }: { job: JobReport; query: URLSearchParams }) {
  const has = useHas();
  const outcome = query.has("error") ? "failed" : (query.get("outcome") ?? "").replace("not-passed", "not_passed");
  const [deleting, setDeleting] = useState(false);
  const [downloading, setDownloading] = useState(false);
  const remove = async (force = false) => {
    await call("DELETE", `/v1/jobs/${encodeURIComponent(job.id)}`, { query: { force } });
    toast("The job was deleted");
    navigate("/jobs");
  };
  return (
    <>
      <Menu label="More">
        {has("labels") && <MenuLink to={`/labels?new=1&job=${job.id}${outcome === "" ? "" : `&rows=${outcome}`}`}>Have people label rows…</MenuLink>}
        {has("labels") && job.progress.done > 0 && <MenuLink to={`/jobs/${job.id}/agreement`}>Agreement with people…</MenuLink>}
        {has("alerts") && <MenuLink to={`/schedules?show=alerts&new=job ${job.id}`}>Alert me…</MenuLink>}
        {job.dataset_name !== null && <MenuLink to={`/datasets/${encodeURIComponent(job.dataset_name)}?tab=scores`}>Scores over time</MenuLink>}
        <MenuLine />
        <MenuItem onClick={() => setDownloading(true)}>Download rows…</MenuItem>
        {isFinal(job.status) && (
          <>
            <MenuLine />
            <MenuItem danger onClick={() => setDeleting(true)}>
              Delete…
            </MenuItem>
          </>
        )}
      </Menu>
      {downloading && <DownloadDialog job={job} query={query} onClose={() => setDownloading(false)} />}
      {deleting && (
        <ConfirmDialog label="Delete" title="Delete this job?" onConfirm={() => remove()} onForce={() => remove(true)} onClose={() => setDeleting(false)}>
          This deletes its results, but not its evaluators and its data set.
        </ConfirmDialog>
      )}
    </>
  );
}

/** Statistics and rows of one of the job's evaluators; reloaded regularly while the job runs. */
function Results({ job, query }: { job: JobReport; query: URLSearchParams }) {
  const [turn, setTurn] = useState(0);
  const final = isFinal(job.status);
  const done = job.progress.done;
  const stamp = final ? "end" : `${turn}`;
  const load = async (signal: AbortSignal) => {
    const begun = performance.now();
    const { evaluators } = await call<JobStatistics>("GET", `/v1/jobs/${job.id}/results`, { signal });
    return { evaluators, took: performance.now() - begun, ended: final };
  };
  const found = useLoaded(load, [job.id, stamp]);
  const took = found.value?.took ?? 0;
  useEffect(() => {
    if (final || found.loading) return;
    // Computing statistics over many rows takes a while, so requests for them take at most a tenth of the time.
    const timer = setTimeout(() => setTurn((before) => before + 1), Math.max(STATISTICS_EVERY_MS, took * 9));
    return () => clearTimeout(timer);
  }, [final, found.loading, took]);
  const loaded = found.value?.evaluators ?? [];
  const evaluators = found.value?.ended ? loaded : loaded.map((one, at) => asReported(one, job.scores[at]));
  const index = Math.max(0, evaluators.findIndex((one) => one.evaluator === query.get("evaluator")));
  const shown = evaluators[index];
  if (found.error !== null && found.value === null) return <ErrorNote error={found.error} onRetry={found.reload} />;
  if (shown === undefined) return <Spinner label="Loading the results" />;
  if (done === 0 && shown.rows === 0) return <p class="muted">{final ? "No row was scored." : "The first rows are being scored. Their results will appear here."}</p>;
  const options = evaluators.map((one) => ({ value: one.evaluator, label: one.evaluator }));
  return (
    <>
      <JobWarnings job={job.id} statistics={shown} />
      {evaluators.length > 1 && (
        <>
          {options.length > FEW && (
            <div class="record-bar line">
              <Select label="Evaluator" value={shown.evaluator} options={options} onValue={choose} />
            </div>
          )}
          <EveryEvaluator evaluators={evaluators} chosen={shown.evaluator} open={options.length <= FEW} onChoose={choose} />
        </>
      )}
      <Headline job={job} statistics={shown} />
      <FewMetrics statistics={loaded[index]!} />
      <JobRows job={job} statistics={shown} query={query} stamp={final ? "end" : "going"} />
      <MoreStatistics job={job} statistics={loaded[index]!} metric={query.get("metric")} stamp={stamp} />
      {final && <JobAgreement job={job.id} />}
    </>
  );
}

/** Statistics with the counts and the mean of the job's newest report, which the progress and the badge show too. */
function asReported(statistics: EvaluatorStatistics, reported: JobScore | undefined): EvaluatorStatistics {
  if (reported === undefined) return statistics;
  const { scored, failed, skipped, mean, mean_rows, pass_rate, judged } = reported;
  const metrics = statistics.metrics.map((one) => (one.name === "score" ? { ...one, mean, count: mean_rows } : one));
  return { ...statistics, rows: scored + failed + skipped, scored, failed, skipped, pass_rate, pass_interval: null, judged, metrics };
}

const choose = (evaluator: string) => setQuery({ evaluator, metric: null, cursor: null, at: null });
