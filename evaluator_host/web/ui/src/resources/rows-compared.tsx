/** The same row in several jobs: the differences in outputs, reasons and scores. */
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
import { columnsInLine, count, figure, oneLine, wordsOf } from "./format";
import { Panel, Verdict } from "./parts";
import type { ChangePage, JobRow, JobRowDetail } from "../api/types";
import { ByColumn, Value } from "./value";

/** A job that is compared. */
export interface Side {
  id: string;
  label: string;
  /** The evaluator of the job to compare; if it is missing, all evaluators. */
  evaluator?: string;
}

type Found = readonly (JobRowDetail | null)[];

const STEP = 8;
const SHOWN_CHARS = 400; // maximum characters of a text in the table; a click shows all of it

function detailOf(job: string, row: number, signal: AbortSignal): Promise<JobRowDetail> {
  return call<JobRowDetail>("GET", `/v1/jobs/${encodeURIComponent(job)}/rows/${row}`, { signal });
}

/** The row in each of the jobs; null for a job that does not have it. */
function detailsOf(sides: readonly Side[], row: number, signal: AbortSignal): Promise<Found> {
  return Promise.all(sides.map((side) => detailOf(side.id, row, signal).catch(() => null)));
}

function asText(value: unknown): string {
  return typeof value === "string" ? value : value === undefined || value === null ? "" : JSON.stringify(value, null, 2);
}

function inputsOf(found: Found): unknown {
  const detail = found.find((one) => one !== null);
  return detail?.given?.variables ?? detail?.given?.inputs ?? detail?.row;
}

function outputsOf(detail: JobRowDetail | null | undefined): string {
  return asText(detail?.given?.outputs);
}

function resultsOf(detail: JobRowDetail | null | undefined, side: Side): JobRow[] {
  return (detail?.results ?? []).filter((one) => side.evaluator === undefined || one.evaluator === side.evaluator);
}

function reasonsOf(detail: JobRowDetail | null | undefined, side: Side): string {
  return resultsOf(detail, side).map(({ result }) => wordsOf(result)).filter(Boolean).join("\n");
}

/** One row of several jobs: its texts in each job beside those in the first. `rows` are the rows through which *Next* goes. */
export function RowsCompared({ sides, row, rows }: { sides: readonly Side[]; row: number; rows: readonly number[] }) {
  const found = useLoaded((signal) => detailsOf(sides, row, signal), [sides.map(({ id }) => id).join(), row]);
  const at = rows.indexOf(row);
  const go = (to: number | undefined) => to !== undefined && setQuery({ row: String(to) });
  const actions = (
    <>
      <Button disabled={at <= 0} onClick={() => go(rows[at - 1])}>
        ‹ Previous
      </Button>
      <Button disabled={at + 1 >= rows.length} onClick={() => go(rows[at + 1])}>
        Next ›
      </Button>
    </>
  );
  return (
    <Dialog title={`Row ${count(row)} in ${sides.length === 2 ? "both" : count(sides.length)} jobs`} wide onClose={() => setQuery({ row: null })} actions={actions}>
      {found.error !== null && <ErrorNote error={found.error} onRetry={found.reload} />}
      {found.value === null && found.error === null && <Spinner label="Loading the row" />}
      {found.value && <Texts key={row} sides={sides} found={found.value} />}
    </Dialog>
  );
}

function Texts({ sides, found }: { sides: readonly Side[]; found: Found }) {
  return (
    <>
      <dl class="facts line">
        {sides.map((side, at) => (
          <div key={side.id} class="fact">
            <dt>{side.label}</dt>
            <dd>
              <Scores detail={found[at]} side={side} />
            </dd>
          </div>
        ))}
      </dl>
      <section class="named-value">
        <h3>Inputs</h3>
        <ByColumn label="Inputs" value={inputsOf(found)} />
      </section>
      <Differing title="Outputs" sides={sides} texts={found.map(outputsOf)} />
      <Differing title="Reasons" sides={sides} texts={found.map((one, at) => reasonsOf(one, sides[at]!))} />
    </>
  );
}

/** The text in the first job, beside each different text in another one. */
function Differing({ title, sides, texts }: { title: string; sides: readonly Side[]; texts: readonly string[] }) {
  const first = texts[0]!;
  const others = sides.map((side, at) => ({ side, text: texts[at]! })).filter(({ text }) => text !== first);
  if (texts.every((text) => text === "")) return null;
  const all = sides.length === 2 ? "both" : "all";
  return (
    <section class="named-value">
      <h3>
        {title}
        {others.length === 0 && `, the same in ${all}`}
      </h3>
      {others.length === 0 && <Value label={title} value={first} />}
      {others.map(({ side, text }) => (
        <Diff key={side.id} before={first} after={text} syntax="text" labels={[sides[0]!.label, side.label]} />
      ))}
    </section>
  );
}

function Scores({ detail, side }: { detail: JobRowDetail | null | undefined; side: Side }) {
  const results = resultsOf(detail, side);
  if (results.length === 0) return <span class="muted">no such row</span>;
  return (
    <>
      {results.map((one) => (
        <span key={one.evaluator} class="chips score-of">
          <Link to={`/jobs/${side.id}/rows/${detail!.index}`} title={`The row in ${side.label}: ${one.evaluator}`}>
            {figure(one.result.score)}
          </Link>{" "}
          <Verdict result={one.result} />
        </span>
      ))}
    </>
  );
}

interface ChangedProps {
  title: string;
  label: string;
  rows: readonly number[];
  /** Number of all changed rows, if there are more than `rows`. */
  all?: number;
  /** Route of all changed rows, in order of rows. */
  every?: string;
  sides: readonly Side[];
  /** Rows to list; null for all. */
  only?: ReadonlySet<number> | null;
}

const EVERY = 10_000; // maximum number of rows that are listed

/** Rows whose score differs from the first job: their inputs, and their results in each job. */
export function ChangedRows({ title, label, rows: first, all = first.length, every, sides, only = null }: ChangedProps) {
  const [most, setMost] = useState(STEP);
  const [asksEvery, setWantsEvery] = useState(false);
  const wantsEvery = asksEvery || (only !== null && all > first.length);
  const listed = useLoaded(async (signal) => (wantsEvery && every ? (await call<ChangePage>("GET", every, { signal })).changes.map(({ row }) => row) : null), [wantsEvery, every]);
  const changed = (listed.value ?? first).filter((row) => only === null || only.has(row));
  const rows = changed.slice(0, most);
  const found = useLoaded((signal) => Promise.all(rows.map(async (row) => ({ row, details: await detailsOf(sides, row, signal) }))), [sides.map(({ id }) => id).join(), rows.join()]);
  const head = (
    <>
      <th scope="col" class="number">
        Row
      </th>
      <th scope="col">Inputs</th>
      {sides.map((side) => (
        <th key={side.id} scope="col">
          {oneLine(side.label, 40)}
        </th>
      ))}
    </>
  );
  return (
    <Panel title={title} class="panel-stack">
      {found.error !== null && <ErrorNote error={found.error} onRetry={found.reload} />}
      {found.value === null && found.error === null && <Spinner label="Loading rows" />}
      {changed.length === 0 && <p class="muted">{only === null ? "No rows." : "None of the rows found."}</p>}
      {changed.length > 0 && only !== null && <p class="muted">{`${count(changed.length)} of them found.`}</p>}
      {changed.length > 0 && found.value && (
        <Table label={label} head={head} class={found.loading ? "rows-busy" : ""}>
          {found.value.map(({ row, details }) => (
            <tr key={row}>
              <th scope="row" class="number">
                <Link to={`/jobs/${sides.at(-1)!.id}/rows/${row}`} class="nowrap">{`row ${count(row)}`}</Link>
                <br />
                <button type="button" class="link-button" aria-label={`Compare the texts of row ${row}`} onClick={() => setQuery({ row: String(row) })}>
                  texts
                </button>
              </th>
              <td class="cell-value">
                <span class="clamped">{columnsInLine(inputsOf(details), SHOWN_CHARS)}</span>
              </td>
              {sides.map((side, at) => (
                <td key={side.id} class="cell-text">
                  <Scores detail={details[at]} side={side} />
                  <p class="clamped mono">{at > 0 && outputsOf(details[at]) === outputsOf(details[0]) ? <span class="muted">the same output</span> : oneLine(outputsOf(details[at]), SHOWN_CHARS)}</p>
                  <p class="clamped muted">{oneLine(reasonsOf(details[at], side), SHOWN_CHARS)}</p>
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
      {listed.error !== null && <ErrorNote error={listed.error} onRetry={listed.reload} />}
      {all > first.length && every !== undefined && only === null && (
        <p>
          <Button small busy={wantsEvery && listed.loading} onClick={() => setWantsEvery(!wantsEvery)}>
            {wantsEvery ? `The ${count(first.length)} that changed most` : `All ${count(all)} in order of rows`}
          </Button>{" "}
          {!wantsEvery && <span class="muted">These are the {count(first.length)} that changed most.</span>}
          {wantsEvery && all > EVERY && <span class="muted">The first {count(EVERY)} are listed; the API has the others.</span>}
        </p>
      )}
    </Panel>
  );
}
