import { call } from "../api/http";
import { Spinner } from "../components/spinner";
import { useLoaded } from "../components/use-loaded";
import { AddToDataset } from "../resources/add-to-dataset";
import { count, rounded, milliseconds, shortId } from "../resources/format";
import { NotThere } from "../resources/not-there";
import { Facts, PageHead, Panel } from "../resources/parts";
import { ResultView } from "../resources/result-view";
import { SpanTree } from "../resources/span-tree";
import type { JobReport, JobRow, JobRowDetail, RequestLog } from "../api/types";
import { ByColumn, Value } from "../resources/value";
import { Link } from "../router";
import type { PageProps } from "../routes";

/** One row of a job: the arguments that its evaluators received, and their results. */
export default function JobRowPage({ params }: PageProps) {
  const id = params["id"] ?? "";
  const index = Number(params["index"]);
  const route = `/v1/jobs/${encodeURIComponent(id)}`;
  const found = useLoaded((signal) => call<JobRowDetail>("GET", `${route}/rows/${index}`, { signal }), [id, index]);
  const job = useLoaded((signal) => call<JobReport>("GET", route, { signal }), [id]).value;
  const detail = found.value?.index === index ? found.value : null;
  const rows = job === null ? null : job.progress.rows / Math.max(1, job.evaluators.length);
  const use = detail?.given ? `/?job=${encodeURIComponent(id)}&row=${index}` : null;
  return (
    <div class="page">
      <PageHead title={`Row ${count(index)}`} up={{ to: `/jobs/${id}`, label: job?.title ?? `Job ${shortId(id)}` }}>
        <nav class="page-actions line" aria-label="Previous and next row">
          {index > 0 && (
            <Link to={`/jobs/${id}/rows/${index - 1}`} class="button button-plain">
              ‹ Previous
            </Link>
          )}
          {rows !== null && index + 1 < rows && (
            <Link to={`/jobs/${id}/rows/${index + 1}`} class="button button-plain">
              Next ›
            </Link>
          )}
        </nav>
        {detail && <AddToDataset source={{ job: id, rows: [index] }} />}
        {use && (
          <Link to={use} class="button button-primary">
            Use in the workbench
          </Link>
        )}
      </PageHead>
      {found.error !== null && <NotThere error={found.error} onRetry={found.reload} list={job === null ? { to: "/jobs", label: "All jobs" } : { to: `/jobs/${id}`, label: "The job and its rows" }} />}
      {detail === null && found.error === null && <Spinner label="Loading the row" />}
      {detail && <Detail detail={detail} use={use} />}
    </div>
  );
}

function Detail({ detail, use }: { detail: JobRowDetail; use: string | null }) {
  const { given, results } = detail;
  const request = results.find((one) => one.request !== null)?.request;
  return (
    <div class="record-columns">
      <div class="record-main stack">
        {given === null ? (
          <Panel title="Row of the data set">
            <p class="muted">The mapping does not fit this row, so no evaluator scored it.</p>
            <Value label="Row of the data set" value={detail.row} />
          </Panel>
        ) : (
          <>
            <Panel title="Inputs">
              <ByColumn label="Inputs" value={given.variables ?? given.inputs} />
            </Panel>
            <Panel title="Outputs">
              <Value label="Outputs" value={given.outputs} />
            </Panel>
            {given.criteria !== undefined && (
              <Panel title="Criteria">
                <Value label="Criteria" value={given.criteria} />
              </Panel>
            )}
            {given.trace && (
              <Panel title="Trace">
                <SpanTree trace={given.trace} label="Spans" />
              </Panel>
            )}
          </>
        )}
        {request && <Request log={request} />}
        {request?.body && (
          <Panel title="Sent to the model">
            <Value label="Sent to the model" value={request.body} />
          </Panel>
        )}
        {request?.response && (
          <Panel title="Response of the model">
            <Value label="Response of the model" value={request.response} />
          </Panel>
        )}
      </div>
      <div class="record-side stack">
        {results.length === 0 && <p class="muted">No evaluator has scored this row yet.</p>}
        {results.map((one) => (
          <OneResult key={one.evaluator} row={one} use={use} />
        ))}
      </div>
    </div>
  );
}

function OneResult({ row, use }: { row: JobRow; use: string | null }) {
  const open = use && <Link to={`${use}&label=${encodeURIComponent(row.evaluator)}`}>Run it again</Link>;
  return (
    <Panel title={row.evaluator} actions={open}>
      <ResultView result={row.result} />
    </Panel>
  );
}

/** The requests to the job's model. */
function Request({ log }: { log: RequestLog }) {
  const attempts = log.attempts ?? [];
  return (
    <Panel title="Request to the model">
      {log.error && <p class="note note-error">{log.error}</p>}
      <Facts
        facts={[
          log.latency_ms !== undefined && (["Latency", milliseconds(log.latency_ms)] as const),
          log.tokens !== undefined && (["Tokens", Object.entries(log.tokens).map(([name, value]) => `${name} ${count(value)}`).join(", ")] as const),
          log.cost !== undefined && log.cost !== null && (["Cost", rounded(log.cost)] as const),
          log.finish_reason ? (["Finish reason", log.finish_reason] as const) : null,
          attempts.length > 0 && (["Attempts", attempts.map((one) => one.error ?? one.status ?? "?").join(", ")] as const),
        ]}
      />
    </Panel>
  );
}
