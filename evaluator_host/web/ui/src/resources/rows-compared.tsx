/** The same row in several jobs: what differs in outputs, reasons and scores. */
import { useState } from "preact/hooks";
import { call } from "../api/http";
import { Button } from "../components/button";
import { Dialog } from "../components/dialog";
import { Diff } from "../components/diff";
import { ErrorNote } from "../components/error-note";
import { Spinner } from "../components/spinner";
import { Table } from "../components/table";
import { useLoaded } from "../components/use-loaded";
import { Link, setQuery } from "../router";
import { count, figure, oneLine, shortId } from "./format";
import { Panel, Verdict } from "./parts";
import type { Comparison, JobReport, JobRow, JobRowDetail } from "../api/types";
import { Value } from "./value";

function detailOf(job: string, row: number, signal: AbortSignal): Promise<JobRowDetail> {
  return call<JobRowDetail>("GET", `/v1/jobs/${encodeURIComponent(job)}/rows/${row}`, { signal });
}

function asText(value: unknown): string {
  return typeof value === "string" ? value : value === undefined || value === null ? "" : JSON.stringify(value, null, 2);
}

function inputsOf(detail: JobRowDetail): unknown {
  return detail.given?.variables ?? detail.given?.inputs ?? detail.row;
}

function wordsOf(row: JobRow | undefined): string {
  return row?.result.error?.message ?? row?.result.reason ?? "";
}

/** One row of two jobs: the texts that differ, side by side. */
export function RowsCompared({ ids, comparison, row }: { ids: { before: string; after: string }; comparison: Comparison; row: number }) {
  const found = useLoaded((signal) => Promise.all([detailOf(ids.before, row, signal), detailOf(ids.after, row, signal)]), [ids.before, ids.after, row]);
  const changes = [...comparison.regressions, ...comparison.improvements].map((one) => one.row);
  const at = changes.indexOf(row);
  const go = (to: number | undefined) => to !== undefined && setQuery({ row: String(to) });
  const actions = (
    <>
      <Button disabled={at <= 0} onClick={() => go(changes[at - 1])}>
        ‹ Previous
      </Button>
      <Button disabled={at + 1 >= changes.length} onClick={() => go(changes[at + 1])}>
        Next ›
      </Button>
    </>
  );
  return (
    <Dialog title={`Row ${count(row)} in both jobs`} wide onClose={() => setQuery({ row: null })} actions={actions}>
      {found.error !== null && <ErrorNote error={found.error} onRetry={found.reload} />}
      {found.value === null && found.error === null && <Spinner label="Loading the row" />}
      {found.value && <BothTexts key={row} before={found.value[0]} after={found.value[1]} comparison={comparison} />}
    </Dialog>
  );
}

function BothTexts({ before, after, comparison }: { before: JobRowDetail; after: JobRowDetail; comparison: Comparison }) {
  const [old, now] = [before.results.find((one) => one.evaluator === comparison.before), after.results.find((one) => one.evaluator === comparison.after)];
  const outputs = [asText(before.given?.outputs), asText(after.given?.outputs)] as const;
  const words = [wordsOf(old), wordsOf(now)] as const;
  const labels = [`before: ${comparison.before}`, `after: ${comparison.after}`] as const;
  return (
    <>
      <p class="chips">
        {old && <Verdict result={old.result} />}
        {figure(old?.result.score)} → <strong>{figure(now?.result.score)}</strong>
        {now && <Verdict result={now.result} />}
      </p>
      <section class="named-value">
        <h3>Inputs</h3>
        <Value label="Inputs" value={inputsOf(after)} />
      </section>
      <section class="named-value">
        <h3>Outputs{outputs[0] === outputs[1] && ", the same in both"}</h3>
        {outputs[0] === outputs[1] ? <Value label="Outputs" value={after.given?.outputs} /> : <Diff before={outputs[0]} after={outputs[1]} syntax="text" labels={labels} />}
      </section>
      {words.some((one) => one !== "") && (
        <section class="named-value">
          <h3>Reasons{words[0] === words[1] && ", the same in both"}</h3>
          {words[0] === words[1] ? <Value label="Reasons" value={words[0]} /> : <Diff before={words[0]} after={words[1]} syntax="text" labels={labels} />}
        </section>
      )}
    </>
  );
}

const STEP = 8;

/** Rows that scored better or worse than in the first job: what they asked, and what came of them in each job. */
export function RowsOfMany({ jobs, comparisons }: { jobs: readonly JobReport[]; comparisons: readonly Comparison[] }) {
  const [most, setMost] = useState(STEP);
  const changed = [...new Set([...comparisons.flatMap((one) => one.regressions), ...comparisons.flatMap((one) => one.improvements)].map((one) => one.row))];
  const rows = changed.slice(0, most);
  const found = useLoaded((signal) => Promise.all(rows.map(async (row) => ({ row, details: await Promise.all(jobs.map((job) => detailOf(job.id, row, signal).catch(() => null))) }))), [rows.join(",")]);
  if (changed.length === 0) return null;
  const head = (
    <>
      <th scope="col" class="number">Row</th>
      <th scope="col">Inputs</th>
      {jobs.map((job) => (
        <th key={job.id} scope="col">
          {oneLine(job.name ?? shortId(job.id), 40)}
        </th>
      ))}
    </>
  );
  return (
    <Panel title="Rows that differ from the first job" class="panel-stack">
      {found.error !== null && <ErrorNote error={found.error} onRetry={found.reload} />}
      {found.value === null && found.error === null && <Spinner label="Loading rows" />}
      {found.value && (
        <Table label="Rows that differ" head={head} class={found.loading ? "rows-busy" : ""}>
          {found.value.map(({ row, details }) => (
            <tr key={row}>
              <th scope="row" class="number">
                {count(row)}
              </th>
              <td class="cell-value">
                <span class="clamped">{oneLine(details.find((one) => one !== null) ? inputsOf(details.find((one) => one !== null)!) : "", 160)}</span>
              </td>
              {details.map((detail, at) => (
                <td key={jobs[at]!.id} class="cell-text">
                  {detail === null ? <span class="muted">no such row</span> : <OneOfMany detail={detail} job={jobs[at]!.id} />}
                </td>
              ))}
            </tr>
          ))}
        </Table>
      )}
      {changed.length > most && (
        <div>
          <Button busy={found.loading} onClick={() => setMost(most + STEP)}>
            {`Show more of ${count(changed.length)} rows`}
          </Button>
        </div>
      )}
    </Panel>
  );
}

function OneOfMany({ detail, job }: { detail: JobRowDetail; job: string }) {
  return (
    <>
      <p class="clamped mono">{oneLine(detail.given?.outputs ?? "", 160)}</p>
      {detail.results.map((one) => (
        <p key={one.evaluator}>
          <Link to={`/jobs/${job}/rows/${detail.index}`}>{figure(one.result.score)}</Link> <Verdict result={one.result} /> <span class="muted">{oneLine(wordsOf(one), 100)}</span>
        </p>
      ))}
    </>
  );
}
