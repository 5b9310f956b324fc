/** The same row in several jobs: the differences in outputs, reasons and scores. */
import { useState } from "preact/hooks";
import { call, saveAs } from "../api/http";
import { Button } from "../components/button";
import { Dialog } from "../components/dialog";
import { Diff } from "../components/diff";
import { ErrorNote } from "../components/error-note";
import { Spinner } from "../components/spinner";
import { Table } from "../components/table";
import { useLoaded } from "../components/use-loaded";
import { Link, setQuery } from "../router";
import { csv } from "./csv";
import { columnsInLine, count, difference, rounded, oneLine, ROW_HEADING, wordsOf } from "./format";
import { Panel, Verdict } from "./parts";
import { idOf, inputsOf, outputOf } from "./row-parts";
import type { Change, ChangePage, JobReport, JobRow, JobRowDetail, JobRowPage } from "../api/types";
import { ByColumn, Value } from "./value";

/** A job that is compared. */
export interface Side {
  job: JobReport;
  label: string;
  /** The evaluator of the job to compare; if it is missing, all evaluators. */
  evaluator?: string;
}

type Found = readonly (JobRowDetail | null)[];

const STEP = 8;
const AT_ONCE = 100; // maximum number of rows of a job to request at once
const SHOWN_CHARS = 400; // maximum characters of a text in the table; a click shows all of it

function detailOf(job: string, row: number, signal: AbortSignal): Promise<JobRowDetail> {
  return call<JobRowDetail>("GET", `/v1/jobs/${encodeURIComponent(job)}/rows/${row}`, { signal });
}

/** The row in each of the jobs; null for a job that does not have it. */
function detailsOf(sides: readonly Side[], row: number, signal: AbortSignal): Promise<Found> {
  return Promise.all(sides.map((side) => detailOf(side.job.id, row, signal).catch(() => null)));
}

/** The results of these rows in a job, by row. */
async function resultsOf({ job, evaluator }: Side, rows: readonly number[], signal?: AbortSignal): Promise<Map<number, JobRow[]>> {
  const found = new Map(rows.map((row): [number, JobRow[]] => [row, []]));
  for (let at = 0; at < rows.length; at += AT_ONCE) {
    let cursor: string | null = null;
    do {
      const page: JobRowPage = await call<JobRowPage>("GET", `/v1/jobs/${job.id}/rows`, { signal, query: { row: rows.slice(at, at + AT_ONCE), evaluator, cursor, limit: 1000 } });
      for (const one of page.rows) found.get(one.index)?.push(one);
      cursor = page.next_cursor;
    } while (cursor !== null);
  }
  return found;
}

const SAVED = ["row", "id", "before", "after", "change", "passed_before", "passed_after", "why", "outputs_before", "outputs"];

/** Save the changed rows as CSV, or those in `only`, those that changed most first, with a column for each input; `every` is the route of all. */
async function saveChanges(every: string, sides: readonly Side[], name: string, only: ReadonlySet<number> | null): Promise<void> {
  const changes: Change[] = [];
  for (let after: number | null = -1; after !== null; ) {
    const page: ChangePage = await call<ChangePage>("GET", `${every}&after=${after}`);
    changes.push(...page.changes.filter(({ row }) => only === null || only.has(row)));
    after = page.next;
  }
  const most = ({ before, after }: Change) => (before === null || after === null ? Infinity : Math.abs(difference(before, after)));
  changes.sort((one, other) => (most(one) === most(other) ? one.row - other.row : most(other) - most(one)));
  const [earlier, later] = await Promise.all([sides[0]!, sides.at(-1)!].map((side) => resultsOf(side, changes.map(({ row }) => row))));
  const { job } = sides.at(-1)!;
  const outputBefore = (was: JobRow | undefined) => (was === undefined ? "" : asText(outputOf(sides[0]!.job, was)));
  const inputs = new Map([...later!].map(([row, [now]]) => [row, now === undefined ? {} : inputsOf(job, now)]));
  const names = [...new Set([...inputs.values()].flatMap(Object.keys))];
  const lines = changes.map(({ row, before, after }) => {
    const [was, now] = [earlier!.get(row)?.[0], later!.get(row)?.[0]];
    const change = before === null || after === null ? null : Number(difference(before, after).toPrecision(12));
    const said = now === undefined ? [] : [wordsOf(now.result), outputBefore(was), asText(outputOf(job, now)), ...names.map((name) => inputCell(inputs.get(row)?.[name]))];
    return [row, idOf(now?.row ?? {}), before, after, change, verdict(was), verdict(now), ...said];
  });
  saveAs(csv([...SAVED, ...names.map((one) => `inputs.${one}`)], lines), `${name}.csv`);
}

function inputCell(value: unknown): string | number {
  if (value === undefined || value === null) return "";
  return typeof value === "string" || typeof value === "number" ? value : JSON.stringify(value);
}

function verdict(row: JobRow | undefined): string {
  return typeof row?.result.passed === "boolean" ? String(row.result.passed) : "";
}

function asText(value: unknown): string {
  return typeof value === "string" ? value : value === undefined || value === null ? "" : JSON.stringify(value, null, 2);
}

function givenTo(found: Found): unknown {
  const detail = found.find((one) => one !== null);
  return detail?.given?.variables ?? detail?.given?.inputs ?? detail?.row;
}

function ofSide(detail: JobRowDetail | null | undefined, side: Side): JobRow[] {
  return (detail?.results ?? []).filter((one) => side.evaluator === undefined || one.evaluator === side.evaluator);
}

function reasonsOf(results: readonly JobRow[]): string {
  return results.map(({ result }) => wordsOf(result)).filter(Boolean).join("\n");
}

function outputIn({ job }: Side, [first]: readonly JobRow[]): string {
  return first === undefined ? "" : asText(outputOf(job, first));
}

/** One row in several jobs: its texts in each job next to its texts in the first job. *Next* goes through `rows`. */
export function RowsCompared({ sides, row, rows }: { sides: readonly Side[]; row: number; rows: readonly number[] }) {
  const found = useLoaded((signal) => detailsOf(sides, row, signal), [sides.map(({ job }) => job.id).join(), row]);
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
          <div key={side.job.id} class="fact">
            <dt>{side.label}</dt>
            <dd>
              <Scores results={ofSide(found[at], side)} side={side} />
            </dd>
          </div>
        ))}
      </dl>
      <section class="named-value">
        <h3>Inputs</h3>
        <ByColumn label="Inputs" value={givenTo(found)} />
      </section>
      <Differing title="Outputs" sides={sides} texts={found.map((one) => asText(one?.given?.outputs))} />
      <Differing title="Reasons" sides={sides} texts={found.map((one, at) => reasonsOf(ofSide(one, sides[at]!)))} />
    </>
  );
}

/** Shows the text in the first job next to each text that differs from it. */
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
        <Diff key={side.job.id} before={first} after={text} syntax="text" labels={[sides[0]!.label, side.label]} />
      ))}
    </section>
  );
}

function Scores({ results, side }: { results: readonly JobRow[]; side: Side }) {
  if (results.length === 0) return <span class="muted">no such row</span>;
  return (
    <>
      {results.map((one) => (
        <span key={one.evaluator} class="chips score-of">
          <Link to={`/jobs/${side.job.id}/rows/${one.index}`} title={`The row in ${side.label}: ${one.evaluator}`}>
            {rounded(one.result.score)}
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
  /** Whether `only` comes from an earlier search, because the present search has not ended or has failed. */
  searching?: boolean;
  /** Text after the number of rows in the title. */
  note?: string;
}

const EVERY = 10_000; // maximum number of rows that are listed

/** Rows whose score differs from the first job: their inputs, and their results in each job. */
export function ChangedRows({ title, label, rows: first, all = first.length, every, sides, only = null, searching = false, note = "" }: ChangedProps) {
  const [most, setMost] = useState(STEP);
  const [asksEvery, setWantsEvery] = useState(false);
  const [saving, setSaving] = useState(false);
  const [unsaved, setUnsaved] = useState<unknown>(null);
  const save = (route: string) => {
    setSaving(true);
    setUnsaved(null);
    saveChanges(route, sides, oneLine(label, 40).toLowerCase().replaceAll(" ", "-"), only).catch(setUnsaved).finally(() => setSaving(false));
  };
  const wantsEvery = asksEvery || (only !== null && all > first.length);
  const listed = useLoaded(async (signal) => (wantsEvery && every ? (await call<ChangePage>("GET", every, { signal })).changes.map(({ row }) => row) : null), [wantsEvery, every]);
  const changed = (listed.value ?? first).filter((row) => only === null || only.has(row));
  const rows = changed.slice(0, most);
  const found = useLoaded(async (signal) => ({ rows, of: await Promise.all(sides.map((side) => resultsOf(side, rows, signal))) }), [sides.map(({ job, evaluator }) => `${job.id} ${evaluator}`).join(), rows.join()]);
  const head = (
    <>
      <th scope="col" class="number">
        {ROW_HEADING}
      </th>
      <th scope="col">Inputs</th>
      {sides.map((side) => (
        <th key={side.job.id} scope="col" title={side.label}>
          {oneLine(side.label, 60)}
        </th>
      ))}
    </>
  );
  return (
    <Panel
      title={only === null ? `${title}: ${count(all)}${note}` : `${title}: ${count(changed.length)} of ${count(all)}`}
      class="panel-stack"
      actions={
        every !== undefined && all > 0 ? (
          <Button kind="quiet" small busy={saving} disabled={searching} aria-label={`${label}: save as CSV`} onClick={() => save(every)}>
            CSV
          </Button>
        ) : undefined
      }
    >
      {unsaved !== null && <ErrorNote error={unsaved} onRetry={() => every && save(every)} />}
      {found.error !== null && <ErrorNote error={found.error} onRetry={found.reload} />}
      {found.value === null && found.error === null && <Spinner label="Loading rows" />}
      {changed.length === 0 && <p class="muted">{only === null ? "No rows." : "No changed row matches the search."}</p>}
      {changed.length > 0 && found.value && (
        <Table label={label} head={head} class={found.loading ? "rows-busy" : ""}>
          {found.value.rows.map((row) => (
            <ChangedRow key={row} row={row} sides={sides} found={found.value!.of.map((results) => results.get(row) ?? [])} />
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

/** A row of the table; `found` has its results in each of the jobs. */
function ChangedRow({ row, sides, found }: { row: number; sides: readonly Side[]; found: readonly (readonly JobRow[])[] }) {
  const outputs = sides.map((side, at) => outputIn(side, found[at]!));
  const has = found.findIndex((results) => results.length > 0);
  return (
    <tr>
      <th scope="row" class="number">
        <Link to={`/jobs/${sides.at(-1)!.job.id}/rows/${row}`} class="nowrap">{`row ${count(row)}`}</Link>
        <br />
        <button type="button" class="link-button" aria-label={`Compare the texts of row ${row}`} onClick={() => setQuery({ row: String(row) })}>
          texts
        </button>
      </th>
      <td class="cell-value">
        <span class="clamped">{has >= 0 && columnsInLine(inputsOf(sides[has]!.job, found[has]![0]!), SHOWN_CHARS)}</span>
      </td>
      {sides.map((side, at) => (
        <td key={side.job.id} class="cell-text">
          <Scores results={found[at]!} side={side} />
          <p class="clamped mono">{at > 0 && outputs[at] === outputs[0] ? <span class="muted">the same output</span> : oneLine(outputs[at], SHOWN_CHARS)}</p>
          <p class="clamped muted">{oneLine(reasonsOf(found[at]!), SHOWN_CHARS)}</p>
        </td>
      ))}
    </tr>
  );
}
