/** The rows of a job with their results: filtered, sorted, searched, a page at a time. Every choice is in the address. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { call } from "../api/http";
import { Button } from "../components/button";
import { Empty } from "../components/empty";
import { ErrorNote } from "../components/error-note";
import { Field, Select } from "../components/field";
import { Spinner } from "../components/spinner";
import { Table } from "../components/table";
import { useLoaded } from "../components/use-loaded";
import { Link, setQuery } from "../router";
import { count, counted, milliseconds, oneLine } from "./format";
import { Panel, Score, Verdict } from "./parts";
import { trailTo } from "./trail";
import { isFinal, type JobReport, type JobRow, type JobRowPage } from "../api/types";

const PAGE = 50;
const FILTERS = ["outcome", "error", "min", "max", "text", "sort"] as const;
const OUTCOMES = [
  { value: "", label: "All outcomes" },
  { value: "passed", label: "Passed" },
  { value: "not-passed", label: "Not passed" },
  { value: "scored", label: "Scored" },
  { value: "failed", label: "Failed" },
  { value: "skipped", label: "Skipped" },
];

interface Props {
  job: JobReport;
  evaluator: string;
  query: URLSearchParams;
  stamp: string;
}

/** Return the query of the address as parameters of the API. */
function asked(query: URLSearchParams, evaluator: string) {
  const outcome = query.get("outcome") ?? "";
  const error = query.get("error");
  return {
    evaluator,
    status: error !== null ? "failed" : ["scored", "failed", "skipped"].includes(outcome) ? outcome : null,
    passed: outcome === "passed" ? true : outcome === "not-passed" ? false : null,
    error,
    min_score: query.get("min"),
    max_score: query.get("max"),
    text: query.get("text"),
    sort: query.get("sort") ?? "row",
    cursor: query.get("cursor"),
    limit: PAGE,
    total: true,
    brief: true,
  };
}

export function JobRows({ job, evaluator, query, stamp }: Props) {
  const wish = asked(query, evaluator);
  const wanted = Math.max(0, Number(query.get("at")) || 0);
  const load = async (signal: AbortSignal) => ({ at: wanted, page: await call<JobRowPage>("GET", `/v1/jobs/${job.id}/rows`, { signal, query: wish }) });
  const found = useLoaded(load, [job.id, stamp, JSON.stringify(wish)]);
  const page = found.value?.page ?? null;
  const at = found.value?.at ?? wanted; // of the rows that are shown, not of those on their way
  const list = JSON.stringify([job.id, { ...wish, cursor: null }]);
  const trail = useMemo(() => trailTo(list, { at: wanted, cursor: wish.cursor }), [list, wanted, wish.cursor]);
  const narrowed = FILTERS.some((name) => name !== "sort" && query.get(name));
  const go = (to: number, cursor: string | null) => setQuery({ at: to === 0 ? null : String(to), cursor });
  const back = trail.at(-1) ?? { at: 0, cursor: null };
  return (
    <Panel title="Rows" class="rows-panel" actions={<Count page={page} searched={wish.text !== null} loading={found.loading} onAgain={isFinal(job.status) ? null : found.reload} />}>
      <Filters query={query} metricOfRange={wish.min_score !== null || wish.max_score !== null} />
      {found.error !== null && <ErrorNote error={found.error} onRetry={found.reload} />}
      {page === null && found.loading && <Spinner label="Loading rows" />}
      {page !== null && page.rows.length === 0 && <NoRows narrowed={narrowed} more={page.next_cursor !== null} />}
      {page !== null && page.rows.length > 0 && <Rows job={job} rows={page.rows} query={query} busy={found.loading} />}
      {page !== null && (at > 0 || page.next_cursor !== null) && (
        <nav class="pager" aria-label="Pages of rows">
          <Button small disabled={at === 0 || found.loading} onClick={() => go(back.at, back.cursor)}>
            {back.at === 0 && at > PAGE ? "‹ First" : "‹ Previous"}
          </Button>
          <span class="muted" role="status">
            {page.rows.length === 0 ? "no rows on this page" : `${count(at + 1)} to ${count(at + page.rows.length)}`}
          </span>
          <Button small disabled={page.next_cursor === null || found.loading} onClick={() => go(at + Math.max(1, page.rows.length), page.next_cursor)}>
            {wish.text !== null && page.rows.length < PAGE ? "Continue search ›" : "Next ›"}
          </Button>
        </nav>
      )}
    </Panel>
  );
}

/** The number of rows. While the job runs, rows are reloaded only on request, because a moving table cannot be read. */
function Count({ page, searched, loading, onAgain }: { page: JobRowPage | null; searched: boolean; loading: boolean; onAgain: (() => void) | null }) {
  if (page === null || page.total === null) return null;
  return (
    <>
      <span class="muted" role="status" aria-busy={loading}>
        {searched ? `searching ${counted(page.total, "row")}` : counted(page.total, "row")}
      </span>
      {onAgain && (
        <Button kind="quiet" small onClick={onAgain}>
          Refresh
        </Button>
      )}
    </>
  );
}

function NoRows({ narrowed, more }: { narrowed: boolean; more: boolean }) {
  if (more) return <p class="muted">No match on this page. Continue the search.</p>;
  return (
    <Empty title={narrowed ? "No matching rows" : "No row has a result yet"}>
      {narrowed && <Button onClick={() => setQuery(Object.fromEntries([...FILTERS, "cursor", "at"].map((name) => [name, null])))}>Show all rows</Button>}
    </Empty>
  );
}

function Filters({ query, metricOfRange }: { query: URLSearchParams; metricOfRange: boolean }) {
  const [text, setText] = useState(query.get("text") ?? "");
  useEffect(() => setText(query.get("text") ?? ""), [query.get("text")]);
  const set = (changes: Record<string, string | null>) => setQuery({ ...changes, cursor: null, at: null });
  const error = query.get("error");
  const submit = (event: Event) => {
    event.preventDefault();
    set({ text: text.trim() });
  };
  return (
    <form class="filters" onSubmit={submit} aria-label="Which rows">
      <Field label="Find text in rows" bare type="search" placeholder="Find text…" value={text} onValue={(value) => (setText(value), value === "" && query.has("text") && set({ text: null }))} />
      <Button type="submit">Find</Button>
      <Select label="Outcome" bare value={error !== null ? "failed" : (query.get("outcome") ?? "")} onValue={(value) => set({ outcome: value, error: null })} options={OUTCOMES} />
      {error !== null && <Chip text={error} onRemove={() => set({ error: null })} />}
      {metricOfRange && <Chip text={`score ${query.get("min") ?? "…"} to ${query.get("max") ?? "…"}`} onRemove={() => set({ min: null, max: null })} />}
    </form>
  );
}

function Chip({ text, onRemove }: { text: string; onRemove: () => void }) {
  return (
    <span class="chip chip-accent">
      {text}
      <button type="button" class="chip-remove" aria-label={`Remove the filter ${text}`} onClick={onRemove}>
        <span aria-hidden="true">×</span>
      </button>
    </span>
  );
}

function Rows({ job, rows, query, busy }: { job: JobReport; rows: readonly JobRow[]; query: URLSearchParams; busy: boolean }) {
  const sort = query.get("sort") ?? "row";
  const head = (
    <>
      <Sortable name="row" sort={sort} label="Row" />
      <th scope="col">Inputs</th>
      <th scope="col">Output</th>
      <Sortable name="score" sort={sort} label="Score" />
      <th scope="col">Outcome</th>
      <th scope="col">Reason</th>
      <Sortable name="run_ms" sort={sort} label="Run time" />
    </>
  );
  return (
    <Table label="Rows" head={head} class={busy ? "rows-table rows-busy" : "rows-table"}>
      {rows.map((row) => (
        <tr key={`${row.index} ${row.evaluator}`}>
          <th scope="row" class="number">
            <Link to={`/jobs/${job.id}/rows/${row.index}`}>{count(row.index)}</Link>
          </th>
          <td class="cell-value">
            <span class="clamped">{oneLine(inputsOf(job, row), 160)}</span>
          </td>
          <td class="cell-value">
            <span class="clamped">{oneLine(outputOf(job, row), 160)}</span>
          </td>
          <td class="number">
            <Score value={row.result.score} />
          </td>
          <td>
            <Verdict result={row.result} />
          </td>
          <td class="cell-text">
            <span class="clamped">{oneLine(row.result.error?.message ?? row.result.reason ?? row.result.label ?? "", 160)}</span>
          </td>
          <td class="number nowrap">{milliseconds(row.result.timing_ms.run)}</td>
        </tr>
      ))}
    </Table>
  );
}

/** A column heading that sorts; pressing it again reverses the order. Rows can only be sorted by row number in one direction. */
function Sortable({ name, sort, label }: { name: "row" | "score" | "run_ms"; sort: string; label: string }) {
  const [up, down] = [name, `-${name}`];
  const next = name === "row" ? null : sort === down ? up : down;
  const order = sort === up ? "ascending" : sort === down ? "descending" : undefined;
  return (
    <th scope="col" class="number" aria-sort={order}>
      <button type="button" class="sort-button" onClick={() => setQuery({ sort: next, cursor: null, at: null })}>
        {label}
        <span aria-hidden="true">{order === "ascending" ? " ↑" : order === "descending" ? " ↓" : ""}</span>
      </button>
    </th>
  );
}

/** Return the columns of a row without its output. */
function inputsOf(job: JobReport, { row }: JobRow): unknown {
  if (row["inputs"] !== null && typeof row["inputs"] === "object") return row["inputs"];
  const output = job.mapping["outputs"] ?? "";
  return Object.fromEntries(Object.entries(row).filter(([name]) => ![output, "outputs", "output", "trace"].includes(name)));
}

function outputOf(job: JobReport, { row, output }: JobRow): unknown {
  if (job.target !== null) return output ?? "";
  const mapped = job.mapping["outputs"];
  return (mapped === undefined ? undefined : row[mapped]) ?? row["outputs"] ?? row["output"] ?? "";
}
