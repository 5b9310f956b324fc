/** A dialog that takes rows from a data set, from a job or from live traces: found by text, by turning pages, or at random. */
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { call, type RequestOptions } from "../api/http";
import { Button } from "../components/button";
import { Dialog } from "../components/dialog";
import { Empty } from "../components/empty";
import { ErrorNote } from "../components/error-note";
import { Field, Select } from "../components/field";
import { Spinner } from "../components/spinner";
import { Table } from "../components/table";
import { type Loaded, useLoaded } from "../components/use-loaded";
import { own } from "../json";
import { count, counted, oneLine, ROW_HEADING, titleAmong } from "../resources/format";
import { useHas } from "../host";
import { Segments } from "../resources/parts";
import type { Columns, DatasetReport, EvaluatorReport, JobReport, JobRow, JobRowDetail, JobRowPage, Row, TraceReport } from "../api/types";
import { newRow, rowOf, shownColumns, type TestRow } from "./test-rows";

const PAGE = 20;
const SEARCHED = 5000; // maximum number of rows of a data set to search; the host searches as many results of a job in a request
const MOST_REQUESTS = 20; // maximum number of requests of a search in a job
const SOURCES = [
  { value: "dataset", label: "Data set" },
  { value: "job", label: "Job" },
  { value: "trace", label: "Live traces" },
] as const;

interface StoredRowsProps {
  onClose: () => void;
  onTake: (rows: readonly TestRow[]) => void;
  /** Number of rows that may still be added; 1 for the test row. */
  room: number;
  /** The columns that the code reads. */
  reads: readonly string[];
}

export function StoredRows({ onClose, onTake, room, reads }: StoredRowsProps) {
  const has = useHas();
  const [source, setSource] = useState<"dataset" | "job" | "trace">("dataset");
  const take = (rows: readonly TestRow[]) => {
    onTake(rows.slice(0, room));
    onClose();
  };
  return (
    <Dialog title={room === 1 ? "Use a stored row" : "Add stored rows"} onClose={onClose} wide>
      <Segments label="From where" value={source} options={SOURCES.filter(({ value }) => value !== "trace" || has("traces"))} onValue={setSource} />
      {source === "dataset" && <FromDataset take={take} room={room} reads={reads} />}
      {source === "job" && <FromJob take={take} room={room} reads={reads} />}
      {source === "trace" && <FromTraces take={take} room={room} reads={reads} />}
    </Dialog>
  );
}

interface SourceProps {
  take: (rows: readonly TestRow[]) => void;
  room: number;
  reads: readonly string[];
}

/** A row to choose, with its name in the source. */
interface Offer {
  name: string;
  shown: Columns;
  row: () => Promise<TestRow> | TestRow;
}

interface Found {
  at: readonly number[];
  records: readonly Columns[];
}

function FromDataset({ take, room, reads }: SourceProps) {
  const sets = useLoaded((signal) => call<DatasetReport[]>("GET", "/v1/datasets", { signal }), []);
  const [chosen, setChosen] = useState("");
  const [first, setFirst] = useState(0);
  const [text, setText] = useState("");
  const [column, setColumn] = useState<string | null>(null);
  const set = sets.value?.find((one) => one.name === chosen) ?? sets.value?.[0] ?? null;
  const name = set?.name ?? "";
  const words = text.trim().toLowerCase();
  const page = useLoaded((signal) => (set === null ? Promise.resolve({ at: [], records: [] }) : words === "" ? rowsFrom(name, first, signal) : rowsWith(name, words, set.rows, signal)), [name, first, words]);
  const outputs = column ?? set?.outputs_column ?? "";
  const offers = useMemo(() => (page.value?.records ?? []).map((record, index): Offer => offerOf(name, record, page.value?.at[index] ?? 0, outputs)), [page.value, outputs]);
  const choose = (another: string) => {
    setChosen(another);
    setFirst(0);
    setColumn(null);
  };
  const random = async () => {
    const most = set?.rows ?? 0;
    const at = [...new Set(Array.from({ length: Math.min(room, PAGE) }, () => Math.floor(Math.random() * most)))];
    const records = await Promise.all(at.map(async (index) => (await rowsFrom(name, index, undefined, 1)).records[0]));
    take(records.flatMap((record, index) => (record === undefined ? [] : [taken(name, record, at[index]!, outputs)])));
  };
  return (
    <Loading found={sets} none={sets.value?.length === 0} title="No data sets yet" text="Upload one on the “Data sets” page.">
      <div class="fill-choice">
        <Select label="Data set" value={name} onValue={choose} options={(sets.value ?? []).map((one) => ({ value: one.name, label: `${one.name} (${counted(one.rows, "row")})` }))} />
        <Select label="Column of the outputs" value={outputs} onValue={setColumn} options={[{ value: "", label: "none" }, ...(set?.columns ?? []).map((one) => ({ value: one, label: one }))]} />
        <Field label="Find in the rows" type="search" placeholder="Text…" value={text} onValue={setText} />
        <Field label="Go to row (from 0)" type="number" min={0} step={1} value={String(first)} onValue={(value) => setFirst(Math.max(0, Math.trunc(Number(value)) || 0))} disabled={words !== ""} />
      </div>
      <Offers offers={offers} found={page} take={take} room={room} reads={reads} />
      <div class="line">
        <Button small disabled={first === 0 || words !== ""} onClick={() => setFirst(Math.max(0, first - PAGE))}>
          ‹ Previous
        </Button>
        <Button small disabled={words !== "" || first + PAGE >= (set?.rows ?? 0)} onClick={() => setFirst(first + PAGE)}>
          Next ›
        </Button>
        <Button small onClick={() => void random()}>
          {room === 1 ? "A random row" : `${Math.min(room, PAGE)} random rows`}
        </Button>
        <span class="muted" role="status">
          {words === "" ? `rows ${count(first)} to ${count(Math.max(first, first + offers.length - 1))} of ${count(set?.rows ?? 0)}` : matchesInWords(offers.length, set?.rows ?? 0)}
        </span>
      </div>
    </Loading>
  );
}

/** How many rows match; the search ends when it has found a page of them. */
function matchesInWords(matches: number, rows: number): string {
  if (matches >= PAGE) return `the first ${PAGE} matches`;
  return `${counted(matches, "match", "matches")}${rows > SEARCHED ? ` in the first ${count(SEARCHED)} rows` : ""}`;
}

function taken(name: string, record: Columns, index: number, column: string): TestRow {
  return newRow(rowOf(record, column === "" ? null : column), `${name}, row ${index}`);
}

function offerOf(name: string, record: Columns, index: number, column: string): Offer {
  return { name: String(index), shown: record, row: () => taken(name, record, index, column) };
}

async function rowsFrom(name: string, first: number, signal?: AbortSignal, limit = PAGE): Promise<Found> {
  const records = await call<Columns[]>("GET", `/v1/datasets/${encodeURIComponent(name)}/rows`, { query: { first, limit }, ...(signal ? { signal } : {}) });
  return { at: records.map((_, index) => first + index), records };
}

/** The first rows that contain a text. */
async function rowsWith(name: string, words: string, rows: number, signal: AbortSignal): Promise<Found> {
  const found: { at: number[]; records: Columns[] } = { at: [], records: [] };
  for (let first = 0; first < Math.min(rows, SEARCHED) && found.at.length < PAGE; first += 500) {
    const page = await rowsFrom(name, first, signal, 500);
    page.records.forEach((record, index) => {
      if (found.at.length >= PAGE || !JSON.stringify(record).toLowerCase().includes(words)) return;
      found.at.push(first + index);
      found.records.push(record);
    });
  }
  return found;
}

const WHICH = [
  { value: "failed", label: "Failed" },
  { value: "not-passed", label: "Not passed" },
  { value: "", label: "All rows" },
];

function FromJob({ take, room, reads }: SourceProps) {
  const jobs = useLoaded((signal) => call<JobReport[]>("GET", "/v1/jobs", { signal, query: { limit: 50 } }), []);
  const [chosen, setChosen] = useState("");
  const [which, setWhich] = useState("failed");
  const [text, setText] = useState("");
  const job = jobs.value?.find((one) => one.id === chosen) ?? jobs.value?.[0] ?? null;
  const route = `/v1/jobs/${job?.id ?? ""}`;
  const query = { status: which === "failed" ? "failed" : null, passed: which === "not-passed" ? false : null, text: text.trim(), limit: PAGE, brief: true };
  const page = useLoaded((signal) => (job === null ? Promise.resolve(NONE) : rowsOfJob(`${route}/rows`, query, signal)), [job?.id, which, text]);
  const found = page.value ?? NONE;
  const offers = useMemo(() => found.rows.map((one): Offer => ({ name: String(one.index), shown: one.row, row: () => rowOfJob(job!, one.index) })), [page.value]);
  return (
    <Loading found={jobs} none={jobs.value?.length === 0} title="No jobs yet" text="Run the evaluator on a data set first.">
      <div class="fill-choice">
        <Select label="Job" value={job?.id ?? ""} onValue={setChosen} options={(jobs.value ?? []).map((one) => ({ value: one.id, label: titleAmong(one, jobs.value ?? []) }))} />
        <Select label="Which rows" value={which} onValue={setWhich} options={WHICH} />
        <Field label="Find in the rows" type="search" placeholder="Text…" value={text} onValue={setText} />
      </div>
      <Offers offers={offers} found={page} take={take} room={room} reads={reads} />
      <span class="muted" role="status">
        {found.rest}
      </span>
    </Loading>
  );
}

interface RowsOfJob {
  /** Each row once, though every evaluator may have a result for it. */
  rows: readonly JobRow[];
  /** Which rows are not among them, in words; empty if there are no more. */
  rest: string;
}

const NONE: RowsOfJob = { rows: [], rest: "" };

/** The first rows that match. A search goes on for several requests, since the host searches 5,000 results in one. */
async function rowsOfJob(route: string, query: RequestOptions["query"], signal: AbortSignal): Promise<RowsOfJob> {
  const rows = new Map<number, JobRow>();
  let cursor: string | null = null;
  for (let asked = 0; asked < MOST_REQUESTS; asked += 1) {
    const page: JobRowPage = await call<JobRowPage>("GET", route, { signal, query: { ...query, cursor } });
    for (const one of page.rows) {
      if (rows.size === PAGE && !rows.has(one.index)) return { rows: [...rows.values()], rest: `the first ${PAGE} rows` };
      rows.set(one.index, one);
    }
    cursor = page.next_cursor;
    if (cursor === null) return { rows: [...rows.values()], rest: "" };
  }
  return { rows: [...rows.values()], rest: `${counted(rows.size, "row")} in the first ${count(MOST_REQUESTS * SEARCHED)} results` };
}

async function rowOfJob(job: JobReport, index: number): Promise<TestRow> {
  const { given, row } = await call<JobRowDetail>("GET", `/v1/jobs/${job.id}/rows/${index}`);
  return newRow(given ?? rowOf(row, null), `${job.title}, row ${index}`);
}

function FromTraces({ take, room, reads }: SourceProps) {
  const evaluators = useLoaded((signal) => call<EvaluatorReport[]>("GET", "/v1/evaluators", { signal }), []);
  const [chosen, setChosen] = useState("");
  const name = chosen || evaluators.value?.[0]?.name || "";
  const page = useLoaded(async (signal) => (name === "" ? [] : call<TraceReport[]>("GET", `/v1/evaluators/${encodeURIComponent(name)}/traces`, { query: { limit: PAGE }, signal })), [name]);
  const offers = useMemo(() => (page.value ?? []).map((one): Offer => ({ name: `trace ${one.number}`, shown: { received: new Date(one.received_at).toLocaleString(), trace: one.trace_id }, row: () => newRow({ trace: one.trace } as Row, `${name}, trace ${one.number}`) })), [page.value]);
  return (
    <Loading found={evaluators} none={evaluators.value?.length === 0} title="There are no traces yet" text="Save an evaluator, then point an OpenTelemetry exporter at it.">
      <div class="fill-choice">
        <Select label="Evaluator" value={name} onValue={setChosen} options={(evaluators.value ?? []).map((one) => ({ value: one.name, label: one.name }))} />
      </div>
      {page.value?.length === 0 && page.error === null ? <Empty title={`${name} has no traces yet`} /> : <Offers offers={offers} found={page} take={take} room={room} reads={reads} />}
    </Loading>
  );
}

function Loading({ found, none, title, text, children }: { found: Loaded<unknown>; none: boolean; title: string; text: string; children: ComponentChildren }) {
  if (found.error !== null) return <ErrorNote error={found.error} onRetry={found.reload} />;
  if (found.value === null) return <Spinner label="Loading" />;
  if (none) return <Empty title={title}>{text}</Empty>;
  return <>{children}</>;
}

const COLUMNS = 5; // columns that are shown if the code reads fewer

function Offers({ offers, found, take, room, reads }: SourceProps & { offers: readonly Offer[]; found: Loaded<unknown> }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const names = shownColumns(offers.map((one) => one.shown), reads, COLUMNS);
  const pick = async (wanted: readonly Offer[]) => {
    setBusy(true);
    try {
      take(await Promise.all(wanted.slice(0, room).map((one) => one.row())));
    } catch (fault) {
      setError(fault);
      setBusy(false);
    }
  };
  if (found.error !== null) return <ErrorNote error={found.error} onRetry={found.reload} />;
  if (found.value === null) return <Spinner label="Loading rows" />;
  if (offers.length === 0) return <Empty title="No such row" />;
  const head = (
    <>
      <th scope="col" aria-label="Actions" />
      <th scope="col">{ROW_HEADING}</th>
      {names.map((name) => (
        <th key={name} scope="col">
          {oneLine(name, 40)}
        </th>
      ))}
    </>
  );
  return (
    <>
      {error !== null && <ErrorNote error={error} />}
      <Table label="Stored rows" head={head} class={found.loading ? "fill-rows rows-busy" : "fill-rows"}>
        {offers.map((one) => (
          <tr key={one.name}>
            <td>
              <Button small disabled={busy} aria-label={`${room === 1 ? "Use" : "Add"} row ${one.name}`} onClick={() => void pick([one])}>
                {room === 1 ? "Use" : "Add"}
              </Button>
            </td>
            <th scope="row" class="nowrap">
              {one.name}
            </th>
            {names.map((name) => (
              <td key={name} class="cell-value">
                <span class="clamped">{oneLine(own(one.shown, name), 120)}</span>
              </td>
            ))}
          </tr>
        ))}
      </Table>
      {room > 1 && (
        <div>
          <Button kind="primary" busy={busy} onClick={() => void pick(offers)}>
            Add these {count(Math.min(offers.length, room))}
          </Button>
        </div>
      )}
    </>
  );
}
