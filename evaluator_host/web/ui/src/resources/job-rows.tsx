/** The rows of a job with their results: filtered, sorted, searched, a page at a time. Every choice is in the address. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { call } from "../api/http";
import { Button } from "../components/button";
import { Empty } from "../components/empty";
import { ErrorNote } from "../components/error-note";
import { Field, Select } from "../components/field";
import { Spinner } from "../components/spinner";
import { Table } from "../components/table";
import { useLoaded } from "../components/use-loaded";
import { Link, setQuery } from "../router";
import { keep, recall } from "../storage";
import { AddToDataset } from "./add-to-dataset";
import { ColumnMeans, groupings, type Grouping } from "./column-means";
import { Failures } from "./failures";
import { count, counted, rounded, milliseconds, oneLine, ROW_HEADING, wordsOf } from "./format";
import { Panel, Score, Segments, Verdict } from "./parts";
import { ResultView } from "./result-view";
import { filtersOf, isSideBySide } from "./row-filters";
import { inputsOf, outputOf } from "./row-parts";
import { SavedFilters } from "./saved-filters";
import { trailTo } from "./trail";
import { isFinal, unitOf, type EvaluatorStatistics, type JobReport, type JobRow, type JobRowDetail, type JobRowPage } from "../api/types";
import { ByColumn, Value } from "./value";

const PAGE = 50;
const NARROW_PAGE = 10; // rows of a page on a phone, where each row is a card
const MOST_RESULTS = 500; // maximum number of results on a page with all evaluators
const NARROW = "(max-width: 760px)";
const FILTERS = ["outcome", "error", "min", "max", "text", "where", "sort"] as const;
const OUTCOMES = [
  { value: "", label: "All outcomes" },
  { value: "passed", label: "Passed" },
  { value: "not-passed", label: "Not passed" },
  { value: "scored", label: "Scored" },
  { value: "failed", label: "Failed" },
  { value: "skipped", label: "Skipped" },
];

const ORDERS = [
  { value: "", label: "In order of rows" },
  { value: "status", label: "Failures first" },
  { value: "score", label: "Lowest score first" },
  { value: "-score", label: "Highest score first" },
  { value: "-run_ms", label: "Slowest first" },
  { value: "run_ms", label: "Fastest first" },
];

interface Props {
  job: JobReport;
  statistics: EvaluatorStatistics;
  query: URLSearchParams;
  stamp: string;
}

export function JobRows({ job, statistics, query, stamp }: Props) {
  const { evaluator } = statistics;
  const pageSize = useNarrow() ? NARROW_PAGE : PAGE;
  const outcome = query.has("error") ? "failed" : (query.get("outcome") ?? "");
  const side = isSideBySide(job, query);
  const limit = side ? job.evaluators.length * Math.min(pageSize, Math.max(1, Math.floor(MOST_RESULTS / job.evaluators.length))) : pageSize;
  const sort = (side ? null : query.get("sort")) ?? "row"; // results can be shown side by side only in the order of rows
  const wish = { ...filtersOf(job, query, evaluator), sort, cursor: query.get("cursor"), limit, total: true, brief: true };
  const wanted = query.has("cursor") ? Math.max(0, Number(query.get("at")) || 0) : 0; // without a cursor, this is the first page
  const load = async (signal: AbortSignal) => ({ at: wanted, page: await call<JobRowPage>("GET", `/v1/jobs/${job.id}/rows`, { signal, query: wish }) });
  const found = useLoaded(load, [job.id, stamp, JSON.stringify(wish)]);
  const page = found.value?.page ?? null;
  const at = found.value?.at ?? wanted; // the place of the rows that are shown, not of those that are still loading
  const list = JSON.stringify([job.id, { ...wish, cursor: null }]);
  const trail = useMemo(() => trailTo(list, { at: wanted, cursor: wish.cursor }), [list, wanted, wish.cursor]);
  const narrowed = FILTERS.some((name) => name !== "sort" && query.get(name));
  const go = (to: number, cursor: string | null) => setQuery({ at: to === 0 ? null : String(to), cursor });
  const back = trail.at(-1) ?? { at: 0, cursor: null };
  const searched = wish.text !== null || wish.where !== null; // a page may then be shorter than its limit
  const by = side ? null : query.get("by");
  const columns = useGroupings(job, page?.rows ?? NO_ROWS, by);
  return (
    <Panel
      title="Rows"
      class="rows-panel"
      actions={
        <>
          {!side && <Segments label="Which rows" value={outcome} options={tabsOf(statistics, outcome)} onValue={(value) => setQuery({ outcome: value || null, error: null, cursor: null, at: null })} />}
          <Count page={page} unit={side ? unitOf(job) : "row"} searched={searched} at={at} loading={found.loading} onAgain={isFinal(job.status) ? null : found.reload} />
        </>
      }
    >
      {job.evaluators.length > 1 && (
        <Segments
          label="Results of"
          value={side ? "all" : "one"}
          options={[
            { value: "one", label: evaluator },
            { value: "all", label: "All evaluators side by side" },
          ]}
          onValue={(value) => setQuery({ side: value === "all" ? "all" : null, cursor: null, at: null, sort: null })}
        />
      )}
      {outcome === "failed" && !side && <Failures job={job} evaluator={evaluator} stamp={stamp} />}
      <SavedFilters list="rows of jobs" names={FILTERS} />
      <Filters query={query} side={side} columns={columns} metricOfRange={wish.min_score !== null || wish.max_score !== null} />
      {by !== null && <ColumnMeans job={job} evaluator={evaluator} by={by} name={columns.find(({ value }) => value === by)?.label ?? by} where={wish.where} stamp={stamp} />}
      {found.error !== null && <ErrorNote error={found.error} onRetry={found.reload} />}
      {page === null && found.loading && <Spinner label="Loading rows" />}
      {page !== null && page.rows.length === 0 && <NoRows narrowed={narrowed} more={page.next_cursor !== null} />}
      {page !== null && page.rows.length > 0 && <Rows job={job} rows={page.rows} query={query} busy={found.loading} side={side} />}
      {page !== null && (at > 0 || page.next_cursor !== null) && (
        <nav class="pager" aria-label="Pages of rows">
          <Button small disabled={at === 0 || found.loading} onClick={() => go(back.at, back.cursor)}>
            {back.at === 0 && at > pageSize ? "‹ First" : "‹ Previous"}
          </Button>
          <span class="muted" role="status">
            {rangeOf(page.rows, at, narrowed || sort !== "row")}
          </span>
          <Button small disabled={page.next_cursor === null || found.loading} onClick={() => go(at + Math.max(1, page.rows.length), page.next_cursor)}>
            {searched && page.rows.length < pageSize ? "Continue search ›" : "Next ›"}
          </Button>
        </nav>
      )}
    </Panel>
  );
}

const NO_ROWS: readonly JobRow[] = [];

/** The rows of a page in words: by their numbers, or, with filters or in another order, by their places in the list. */
function rangeOf(rows: readonly JobRow[], at: number, narrowed: boolean): string {
  if (rows.length === 0) return "no rows on this page";
  return narrowed ? `matches ${count(at + 1)} to ${count(at + rows.length)}` : `rows ${count(rows[0]!.index)} to ${count(rows.at(-1)!.index)}`;
}

/** The columns of all rows of a job that were seen so far, and the chosen column. */
function useGroupings(job: JobReport, rows: readonly JobRow[], by: string | null): readonly Grouping[] {
  const seen = useRef({ job: job.id, columns: new Map<string, Grouping>() });
  if (seen.current.job !== job.id) seen.current = { job: job.id, columns: new Map() };
  const found = useMemo(() => groupings(rows, (row) => inputsOf(job, row)), [job.id, rows]);
  const { columns } = seen.current;
  for (const one of found) if (!columns.has(one.value)) columns.set(one.value, one);
  return [...columns.values(), ...(by !== null && !columns.has(by) ? [{ value: by, name: by, label: by }] : [])];
}

/** The tabs *Failed 36*, *Not passed 97*, *All 500*, and one more for another outcome if that is chosen. */
function tabsOf(statistics: EvaluatorStatistics, outcome: string): { value: string; label: string }[] {
  const tabs = [
    ...(statistics.failed > 0 ? [{ value: "failed", label: `Failed ${count(statistics.failed)}` }] : []),
    ...((statistics.not_passed ?? 0) > 0 ? [{ value: "not-passed", label: `Not passed ${count(statistics.not_passed ?? 0)}` }] : []),
    { value: "", label: `All ${count(statistics.rows)}` },
  ];
  const other = OUTCOMES.find((one) => one.value === outcome);
  return tabs.some(({ value }) => value === outcome) || other === undefined ? tabs : [...tabs, other];
}

/** Whether rows are cards, as on a phone. */
function useNarrow(): boolean {
  const [narrow, setNarrow] = useState(() => matchMedia(NARROW).matches);
  useEffect(() => {
    const media = matchMedia(NARROW);
    const hear = () => setNarrow(media.matches);
    media.addEventListener("change", hear);
    return () => media.removeEventListener("change", hear);
  }, []);
  return narrow;
}

/** The number of rows, or of results side by side, with a button to reload them: a table that moves while the job runs could not be read. */
function Count({ page, unit, searched, at, loading, onAgain }: { page: JobRowPage | null; unit: string; searched: boolean; at: number; loading: boolean; onAgain: (() => void) | null }) {
  if (page === null || page.total === null) return null;
  const total = counted(page.total, unit);
  const whole = at === 0 && page.next_cursor === null;
  const found = `${count(page.rows.length)}${whole ? "" : " on this page,"} of ${total}`;
  return (
    <>
      <span class="muted" role="status" aria-busy={loading}>
        {searched ? (loading ? `searching ${total}` : found) : total}
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

function Filters({ query, side, columns, metricOfRange }: { query: URLSearchParams; side: boolean; columns: readonly Grouping[]; metricOfRange: boolean }) {
  const [text, setText] = useState(query.get("text") ?? "");
  useEffect(() => setText(query.get("text") ?? ""), [query.get("text")]);
  const set = (changes: Record<string, string | null>) => setQuery({ ...changes, cursor: null, at: null });
  const error = query.get("error");
  const where = query.get("where");
  const bound = (name: "min" | "max") => (query.has(name) ? rounded(Number(query.get(name))) : "…");
  const submit = (event: Event) => {
    event.preventDefault();
    set({ text: text.trim() });
  };
  return (
    <form class="filters line" onSubmit={submit} aria-label="Which rows">
      <Field label="Find text in rows" bare type="search" placeholder="Find text…" value={text} onValue={(value) => (setText(value), value === "" && query.has("text") && set({ text: null }))} />
      <Button type="submit">Find</Button>
      <Select label="Outcome" bare value={error !== null ? "failed" : (query.get("outcome") ?? "")} onValue={(value) => set({ outcome: value, error: null })} options={OUTCOMES} />
      {!side && <Select label="Order" bare value={query.get("sort") ?? ""} onValue={(value) => set({ sort: value })} options={ORDERS} />}
      {!side && columns.length > 0 && <Select label="Mean by column" bare value={query.get("by") ?? ""} onValue={(by) => set({ by, where: null })} options={[{ value: "", label: "Mean by column…" }, ...columns.map(({ value, label }) => ({ value, label: `Mean by ${label}` }))]} />}
      {error !== null && <Chip text={error} onRemove={() => set({ error: null })} />}
      {!side && where !== null && <Chip text={where.replace(/^inputs\./, "").replace(/^([^=!<>~]+)=$/, "$1 is empty")} onRemove={() => set({ where: null })} />}
      {metricOfRange && <Chip text={`score ${bound("min")} to ${bound("max")}`} onRemove={() => set({ min: null, max: null })} />}
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

/** The results of a row: of one evaluator, or of all side by side. */
interface Line {
  index: number;
  row: JobRow;
  results: ReadonlyMap<string, JobRow>;
}

function linesOf(rows: readonly JobRow[]): Line[] {
  const lines = new Map<number, { index: number; row: JobRow; results: Map<string, JobRow> }>();
  for (const row of rows) {
    const line = lines.get(row.index) ?? { index: row.index, row, results: new Map<string, JobRow>() };
    line.results.set(row.evaluator, row);
    lines.set(row.index, line);
  }
  return [...lines.values()];
}

function Rows({ job, rows, query, busy, side }: { job: JobReport; rows: readonly JobRow[]; query: URLSearchParams; busy: boolean; side: boolean }) {
  const sort = query.get("sort") ?? "row";
  const lines = useMemo(() => linesOf(rows), [rows]);
  const offered = useMemo(() => offeredColumns(job, rows), [job.id, rows]);
  const [columns, choose] = useColumns(offered);
  const evaluators = side ? job.evaluators : [rows[0]?.evaluator ?? ""];
  const peek = query.has("peek") ? Number(query.get("peek")) : null;
  usePeekKeys(lines, peek);
  const has = (name: string) => columns.includes(name);
  const head = (
    <>
      <Sortable name="row" sort={sort} label={ROW_HEADING} />
      {offered.filter((one) => one.kind === "input" && has(one.name)).map((one) => (
        <th key={one.name} scope="col">
          {oneLine(one.label, 40)}
        </th>
      ))}
      {has("output") && <th scope="col">Output</th>}
      {side ? evaluators.map((name) => <th key={name} scope="col">{oneLine(name, 30)}</th>) : <Sortable name="score" sort={sort} label="Score" />}
      {!side && <th scope="col">Outcome</th>}
      {!side && offered.filter((one) => one.kind === "metric" && has(one.name)).map((one) => (
        <th key={one.name} scope="col" class="number">
          {oneLine(one.label, 30)}
        </th>
      ))}
      {!side && has("reason") && <th scope="col">Reason</th>}
      {!side && has("run_ms") && <Sortable name="run_ms" sort={sort} label="Run time" />}
    </>
  );
  return (
    <>
      <div class="rows-tools line">
        <ColumnChoice offered={side ? offered.filter(({ kind, name }) => kind === "input" || name === "output") : offered} chosen={columns} onChosen={choose} />
        <AddToDataset small source={{ job: job.id, rows: lines.map(({ index }) => index) }} label={`Add ${lines.length === 1 ? "this row" : `the ${count(lines.length)} rows shown`} to a data set…`} />
      </div>
      <Table label="Rows and results" head={head} class={busy ? "rows-table rows-busy" : "rows-table"}>
        {lines.map(({ index, row, results }) => (
          <tr key={index} class={index === peek ? "row-peeked" : ""} onClick={(event) => !(event.target as Element).closest("a, button") && setQuery({ peek: index === peek ? null : String(index) })}>
            <th scope="row" class="number">
              <Link to={`/jobs/${job.id}/rows/${index}`}>{count(index)}</Link>
            </th>
            {offered.filter((one) => one.kind === "input" && has(one.name)).map((one) => (
              <td key={one.name} class="cell-value">
                <span class="clamped">{oneLine(inputsOf(job, row)[one.label], 160)}</span>
              </td>
            ))}
            {has("output") && (
              <td class="cell-value">
                <span class="clamped">{oneLine(outputOf(job, row), 160)}</span>
              </td>
            )}
            {side ? (
              evaluators.map((name) => (
                <td key={name}>
                  <SideScore row={results.get(name)} />
                </td>
              ))
            ) : (
              <>
                <td class="number">
                  <Score value={row.result.score} />
                </td>
                <td>
                  <Verdict result={row.result} />
                </td>
                {offered.filter((one) => one.kind === "metric" && has(one.name)).map((one) => (
                  <td key={one.name} class="number">
                    {rounded(row.result.metrics[one.label])}
                  </td>
                ))}
                {has("reason") && (
                  <td class="cell-text">
                    <span class="clamped">{oneLine(wordsOf(row.result) || (row.result.label ?? ""), 160)}</span>
                  </td>
                )}
                {has("run_ms") && <td class="number nowrap">{milliseconds(row.result.timing_ms.run)}</td>}
              </>
            )}
          </tr>
        ))}
      </Table>
      {peek !== null && <Peek job={job} index={peek} lines={lines} />}
    </>
  );
}

function SideScore({ row }: { row: JobRow | undefined }) {
  if (row === undefined) return <span class="muted">–</span>;
  return (
    <span class="side-score" title={oneLine(wordsOf(row.result), 300)}>
      {row.result.score !== null && <Score value={row.result.score} />} <Verdict result={row.result} />
    </span>
  );
}

interface Column {
  /** Unique name: `input question`, `output`. */
  name: string;
  label: string;
  kind: "input" | "metric" | "other";
}

const FIRST_INPUTS = 4;
const FEW_METRICS = 6; // maximum number of metrics that are shown unless the user hides them
const CHOSEN = "job-columns";

/** The columns that these rows could have. */
function offeredColumns(job: JobReport, rows: readonly JobRow[]): Column[] {
  const inputs = new Set(rows.flatMap((row) => Object.keys(inputsOf(job, row))));
  const metrics = new Set(rows.flatMap((row) => Object.keys(row.result.metrics)));
  metrics.delete("score");
  return [
    ...[...inputs].slice(0, 40).map((label): Column => ({ name: `input ${label}`, label, kind: "input" })),
    { name: "output", label: "Output", kind: "other" },
    ...[...metrics].slice(0, 60).map((label): Column => ({ name: `metric ${label}`, label, kind: "metric" })),
    { name: "reason", label: "Reason", kind: "other" },
    { name: "run_ms", label: "Run time", kind: "other" },
  ];
}

/** The chosen columns; this browser remembers which ones were added and removed. */
function useColumns(offered: readonly Column[]): [readonly string[], (name: string, shown: boolean) => void] {
  const [changes, setChanges] = useState<Record<string, boolean>>(() => {
    try {
      return JSON.parse(recall(CHOSEN) ?? "{}") as Record<string, boolean>;
    } catch {
      return {};
    }
  });
  let inputs = 0;
  const fewMetrics = offered.filter(({ kind }) => kind === "metric").length <= FEW_METRICS;
  const shown = offered.filter(({ name, kind }) => changes[name] ?? (kind === "input" ? ++inputs <= FIRST_INPUTS : kind === "other" || fewMetrics));
  const choose = (name: string, isShown: boolean) => {
    const changed = { ...changes, [name]: isShown };
    setChanges(changed);
    keep(CHOSEN, JSON.stringify(changed));
  };
  return [shown.map(({ name }) => name), choose];
}

function ColumnChoice({ offered, chosen, onChosen }: { offered: readonly Column[]; chosen: readonly string[]; onChosen: (name: string, shown: boolean) => void }) {
  return (
    <details class="column-choice">
      <summary>
        Columns <span class="muted">({offered.filter(({ name }) => chosen.includes(name)).length} of {offered.length}) · click a row to look into it, j and k for the next and the previous one</span>
      </summary>
      <div class="chips">
        {offered.map(({ name, label, kind }) => (
          <label key={name} class="check">
            <input type="checkbox" checked={chosen.includes(name)} onChange={(event) => onChosen(name, event.currentTarget.checked)} />
            <span>
              {oneLine(label, 40)} {kind === "metric" && <span class="muted">metric</span>}
            </span>
          </label>
        ))}
      </div>
    </details>
  );
}

/** Keys of the panel next to the table: j and k for the next and the previous row of the page, Escape to close it. */
function usePeekKeys(lines: readonly Line[], peek: number | null): void {
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]") !== null) return;
      if (event.target instanceof HTMLElement && event.target.closest("input, textarea, select, [contenteditable]") !== null) return;
      const step = event.key === "j" ? 1 : event.key === "k" ? -1 : 0;
      if (event.key === "Escape" && peek !== null) setQuery({ peek: null });
      if (step === 0 || lines.length === 0) return;
      event.preventDefault();
      const at = lines.findIndex(({ index }) => index === peek);
      const next = lines[at < 0 ? 0 : Math.min(Math.max(at + step, 0), lines.length - 1)]!;
      setQuery({ peek: String(next.index) });
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, [lines, peek]);
  useEffect(() => {
    if (peek !== null) document.querySelector(".row-peeked")?.scrollIntoView({ block: "nearest" });
  }, [peek]);
}

/** A panel next to the table that shows one row: the input of the evaluators, and every result. */
function Peek({ job, index, lines }: { job: JobReport; index: number; lines: readonly Line[] }) {
  const found = useLoaded((signal) => call<JobRowDetail>("GET", `/v1/jobs/${job.id}/rows/${index}`, { signal }), [job.id, index]);
  const at = lines.findIndex((line) => line.index === index);
  const to = (place: number) => setQuery({ peek: String(lines[place]!.index) });
  const detail = found.value?.index === index ? found.value : null;
  const given = detail?.given;
  return (
    <aside class="peek stack" aria-label={`Row ${index}`}>
      <header class="panel-head">
        <h2>
          <Link to={`/jobs/${job.id}/rows/${index}`}>Row {count(index)}</Link>
        </h2>
        <div class="page-actions line">
          <Button small title="k" disabled={at <= 0} onClick={() => to(at - 1)}>
            ‹ Previous
          </Button>
          <Button small title="j" disabled={at < 0 || at >= lines.length - 1} onClick={() => to(at + 1)}>
            Next ›
          </Button>
          {given && (
            <Link to={`/?job=${job.id}&row=${index}`} class="button button-plain button-small">
              Workbench
            </Link>
          )}
          <AddToDataset small source={{ job: job.id, rows: [index] }} />
          <Button kind="quiet" small title="Escape" onClick={() => setQuery({ peek: null })}>
            Close
          </Button>
        </div>
      </header>
      <div class="peek-body stack">
        {found.error !== null && <ErrorNote error={found.error} onRetry={found.reload} />}
        {detail === null && found.error === null && <Spinner label="Loading the row" />}
        {detail !== null && (
          <>
            {detail.results.map((one) => (
              <section key={one.evaluator}>
                <h3>{one.evaluator}</h3>
                <ResultView result={one.result} />
              </section>
            ))}
            <section>
              <h3>Output</h3>
              <Value label="Output" value={given ? given.outputs : detail.row["outputs"]} />
            </section>
            <section>
              <h3>Inputs</h3>
              <ByColumn label="Inputs" value={given ? (given.variables ?? given.inputs) : detail.row} />
            </section>
          </>
        )}
      </div>
    </aside>
  );
}

/** A column heading that sorts; pressing it again reverses the order. By row number, rows can be sorted in one direction only. */
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
