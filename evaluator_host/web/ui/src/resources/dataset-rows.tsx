/** The rows of a data set: searched, filtered and sorted by the host, a page at a time; changed, added and removed. Every choice is in the address. */
import { useEffect, useState } from "preact/hooks";
import { editDataset, pageOfRows, type Search } from "../api/dataset-rows";
import { Button } from "../components/button";
import { Dialog } from "../components/dialog";
import { Empty } from "../components/empty";
import { ErrorNote } from "../components/error-note";
import { Field, Select } from "../components/field";
import { Spinner } from "../components/spinner";
import { Table } from "../components/table";
import { toast } from "../components/toasts";
import { useAction } from "../components/use-action";
import { useLoaded } from "../components/use-loaded";
import { own } from "../json";
import { Link, setQuery } from "../router";
import { SavedFilters } from "./saved-filters";
import { Confirm } from "./confirm";
import { count, counted, oneLine, ROW_HEADING } from "./format";
import { type Cell, cellsOf, emptyCells, RowForm, rowFrom } from "./row-form";
import type { Columns, DatasetReport, FoundRow } from "../api/types";
import { Value } from "./value";

const PAGE = 50;
const COLUMNS_SHOWN = 12;
const SIGNS = [
  { value: "=", label: "is" },
  { value: "!=", label: "is not" },
  { value: "~", label: "contains" },
  { value: ">", label: "more than" },
  { value: ">=", label: "at least" },
  { value: "<", label: "less than" },
  { value: "<=", label: "at most" },
];

export interface RowsProps {
  report: DatasetReport;
  query: URLSearchParams;
  /** Whether this is an older version, which cannot be changed. */
  old: boolean;
  /** Called after every change. */
  onChanged: () => void;
}

function searchOf(query: URLSearchParams): Search {
  return { text: query.get("text") ?? "", where: query.get("where")?.split("\n") ?? [], sort: query.get("sort") };
}

export function DatasetRows({ report, query, old, onChanged }: RowsProps) {
  const search = searchOf(query);
  const first = Math.max(0, Number(query.get("first")) || 0);
  const found = useLoaded((signal) => pageOfRows(report, search, first, PAGE, signal), [report.id, first, JSON.stringify(search)]);
  const [selected, setSelected] = useState<ReadonlySet<number>>(new Set());
  const [adding, setAdding] = useState(false);
  useEffect(() => setSelected(new Set()), [report.id, first, JSON.stringify(search)]);
  const rows = found.value?.rows ?? [];
  const total = found.value?.total ?? 0;
  const chosen = query.get("row");
  const narrowed = search.text !== "" || search.where.length > 0;
  const removed = async (numbers: readonly number[]) => {
    await editDataset(report.name, { remove: numbers, version: report.version });
    toast(`${counted(numbers.length, "row")} removed: version ${report.version + 1}`);
    setQuery({ row: null });
    onChanged();
  };
  return (
    <>
      <Filters report={report} search={search} />
      <SavedFilters list={`rows of ${report.name.replace(/@\d+$/, "")}`} names={["text", "where", "sort"]} />
      <div class="record-bar line record-bar-flat">
        <span class="muted" role="status" aria-busy={found.loading}>
          {found.value === null ? "" : narrowed ? `${counted(total, "match", "matches")} in ${counted(report.rows, "row")}` : counted(total, "row")}
        </span>
        {!old && (
          <Button small onClick={() => setAdding(true)}>
            Add a row…
          </Button>
        )}
        {selected.size > 0 && (
          <Confirm small label={`Remove ${counted(selected.size, "row")}`} title={`Remove ${counted(selected.size, "row")}?`} onConfirm={() => removed([...selected])}>
            The other rows become version {report.version + 1}. The current version stays in the list of versions.
          </Confirm>
        )}
      </div>
      {found.error !== null && <ErrorNote error={found.error} onRetry={found.reload} />}
      {found.value === null && found.loading && <Spinner label="Loading rows" />}
      {found.value !== null && rows.length === 0 && (
        <Empty title={narrowed ? "No matching rows" : "No rows on this page"}>
          <Button onClick={() => setQuery({ text: null, where: null, first: null })}>Show all rows</Button>
        </Empty>
      )}
      {rows.length > 0 && <RowTable report={report} rows={rows} search={search} busy={found.loading} selected={selected} onSelected={old ? null : setSelected} />}
      <Pager first={first} shown={rows.length} total={total} narrowed={narrowed} loading={found.value === null} />
      {chosen !== null && <RowDialog report={report} index={Number(chosen)} page={rows} old={old} onChanged={onChanged} onRemove={(index) => removed([index])} />}
      {adding && <AddRow report={report} like={rows[0]?.row ?? {}} onClose={() => setAdding(false)} onAdded={onChanged} />}
    </>
  );
}

function Filters({ report, search }: { report: DatasetReport; search: Search }) {
  const [text, setText] = useState(search.text);
  const [column, setColumn] = useState("");
  const [sign, setSign] = useState("=");
  const [value, setValue] = useState("");
  useEffect(() => setText(search.text), [search.text]);
  const set = (changes: Record<string, string | null>) => setQuery({ ...changes, first: null });
  const submit = (event: Event) => {
    event.preventDefault();
    const where = column === "" ? search.where : [...search.where, `${column}${sign}${value.trim()}`];
    set({ text: text.trim(), where: where.join("\n") });
    setColumn("");
    setValue("");
  };
  return (
    <form class="filters line" onSubmit={submit} aria-label="Which rows">
      <Field label="Find text in rows" bare type="search" placeholder="Find text…" value={text} onValue={(given) => (setText(given), given === "" && search.text !== "" && set({ text: null }))} />
      <Select label="Column of a condition" bare value={column} onValue={setColumn} options={[{ value: "", label: "Any column" }, ...report.columns.filter((one) => !/[=!<>~]/.test(one)).map((one) => ({ value: one, label: oneLine(one, 40) }))]} />
      {column !== "" && (
        <>
          <Select label="Comparison" bare value={sign} onValue={setSign} options={SIGNS} />
          <Field label="Value" bare value={value} onValue={setValue} placeholder="Value" autocomplete="off" />
        </>
      )}
      <Button type="submit">{column === "" ? "Find" : "Add condition"}</Button>
      {search.where.map((one) => (
        <span key={one} class="chip chip-accent">
          {oneLine(one, 60)}
          <button type="button" class="chip-remove" aria-label={`Remove the condition ${one}`} onClick={() => set({ where: search.where.filter((other) => other !== one).join("\n") })}>
            <span aria-hidden="true">×</span>
          </button>
        </span>
      ))}
    </form>
  );
}

interface TableProps {
  report: DatasetReport;
  rows: readonly FoundRow[];
  search: Search;
  busy: boolean;
  selected: ReadonlySet<number>;
  onSelected: ((selected: ReadonlySet<number>) => void) | null;
}

function RowTable({ report, rows, search, busy, selected, onSelected }: TableProps) {
  const columns = report.columns.slice(0, COLUMNS_SHOWN);
  const more = report.columns.length - columns.length;
  const all = rows.every(({ index }) => selected.has(index));
  const toggle = (index: number, on: boolean) => onSelected?.(new Set(on ? [...selected, index] : [...selected].filter((one) => one !== index)));
  const head = (
    <>
      {onSelected && (
        <th scope="col" class="cell-check">
          <input type="checkbox" aria-label="Every row of this page" checked={all} onChange={() => onSelected(new Set(all ? [] : rows.map(({ index }) => index)))} />
        </th>
      )}
      <th scope="col" class="number">{ROW_HEADING}</th>
      {columns.map((column) => (
        <Sortable key={column} column={column} sort={search.sort} />
      ))}
      {more > 0 && <th scope="col">and {more} more</th>}
    </>
  );
  return (
    <Table label={`Rows of ${report.name}`} head={head} class={busy ? "rows-busy" : ""}>
      {rows.map(({ index, row }) => (
        <tr key={index}>
          {onSelected && (
            <td class="cell-check">
              <input type="checkbox" aria-label={`Select row ${index}`} checked={selected.has(index)} onChange={(event) => toggle(index, event.currentTarget.checked)} />
            </td>
          )}
          <th scope="row" class="number">
            <button type="button" class="link-button" aria-label={`Row ${index}`} onClick={() => setQuery({ row: String(index) })}>
              {index}
            </button>
          </th>
          {columns.map((column) => (
            <td key={column} class="cell-value">
              <span class="clamped">{oneLine(own(row, column), 120)}</span>
            </td>
          ))}
          {more > 0 && <td class="muted">…</td>}
        </tr>
      ))}
    </Table>
  );
}

/** A heading that sorts by its column: upwards, then downwards, then not at all. */
function Sortable({ column, sort }: { column: string; sort: string | null }) {
  const order = sort === column ? "ascending" : sort === `-${column}` ? "descending" : undefined;
  const next = order === undefined ? column : order === "ascending" ? `-${column}` : null;
  return (
    <th scope="col" aria-sort={order}>
      <button type="button" class="sort-button" onClick={() => setQuery({ sort: next, first: null })}>
        {oneLine(column, 40)}
        <span aria-hidden="true">{order === "ascending" ? " ↑" : order === "descending" ? " ↓" : ""}</span>
      </button>
    </th>
  );
}

function Pager({ first, shown, total, narrowed, loading }: { first: number; shown: number; total: number; narrowed: boolean; loading: boolean }) {
  if (loading) return null;
  return (
    <nav class="pager" aria-label="Pages of rows">
      <Button small disabled={first === 0} onClick={() => setQuery({ first: first <= PAGE ? null : String(first - PAGE) })}>
        ‹ Previous
      </Button>
      <span class="muted" role="status">
        {shown === 0 ? "no rows on this page" : narrowed ? `matches ${count(first + 1)} to ${count(first + shown)} of ${count(total)}` : `rows ${count(first)} to ${count(first + shown - 1)} of ${count(total)}`}
      </span>
      <Button small disabled={first + shown >= total} onClick={() => setQuery({ first: String(first + shown) })}>
        Next ›
      </Button>
    </nav>
  );
}

interface DialogProps {
  report: DatasetReport;
  index: number;
  page: readonly FoundRow[];
  old: boolean;
  onChanged: () => void;
  onRemove: (index: number) => Promise<void>;
}

/** A dialog to read and change a row. */
function RowDialog({ report, index, page, old, onChanged, onRemove }: DialogProps) {
  const known = page.find((one) => one.index === index)?.row;
  const all: Search = { text: "", where: [], sort: null };
  const found = useLoaded(async (signal) => known ?? (await pageOfRows(report, all, index, 1, signal)).rows[0]?.row ?? null, [report.id, index]);
  const [cells, setCells] = useState<readonly Cell[] | null>(null);
  const at = page.findIndex((one) => one.index === index);
  const go = (to: FoundRow | undefined) => {
    setCells(null);
    if (to) setQuery({ row: String(to.index) });
  };
  const close = () => setQuery({ row: null });
  if (cells !== null) {
    return (
      <EditDialog
        title={`Change row ${count(index)}`}
        version={report.version}
        cells={cells}
        onCells={setCells}
        onClose={() => setCells(null)}
        onSave={async (row) => {
          await editDataset(report.name, { set: { [index]: row }, version: report.version });
          toast(`Row ${index} changed: version ${report.version + 1}`);
          close();
          onChanged();
        }}
      />
    );
  }
  const actions = (
    <>
      {!old && (
        <>
          <Confirm label="Remove" title={`Remove row ${count(index)}?`} onConfirm={() => onRemove(index)}>
            The other rows become version {report.version + 1}, and rows after this one move up by one.
          </Confirm>
          <Button disabled={!found.value} onClick={() => setCells(cellsOf(report.columns, found.value!))}>
            Change
          </Button>
        </>
      )}
      <Button disabled={at <= 0} onClick={() => go(page[at - 1])}>
        ‹ Previous
      </Button>
      <Button disabled={at < 0 || at + 1 >= page.length} onClick={() => go(page[at + 1])}>
        Next ›
      </Button>
      <Link to={`/?dataset=${encodeURIComponent(report.name)}&row=${index}`} class="button button-primary">
        Use in the workbench
      </Link>
    </>
  );
  return (
    <Dialog title={`Row ${count(index)}`} wide onClose={close} actions={actions}>
      {found.error !== null && <ErrorNote error={found.error} />}
      {!found.loading && found.value === null && found.error === null && <p class="muted">This row does not exist.</p>}
      {found.value && Object.entries(found.value).map(([column, value]) => (
        <section key={column} class="named-value">
          <h3>{column}</h3>
          <Value label={column} value={value} empty="null" />
        </section>
      ))}
    </Dialog>
  );
}

function AddRow({ report, like, onClose, onAdded }: { report: DatasetReport; like: Columns; onClose: () => void; onAdded: () => void }) {
  const [cells, setCells] = useState<readonly Cell[]>(() => emptyCells(report.columns, like));
  const save = async (row: Columns) => {
    const made = await editDataset(report.name, { add: [row] });
    toast(`Row ${made.rows - 1} added: version ${made.version}`);
    onClose();
    onAdded();
  };
  return <EditDialog title="Add a row" version={report.version} cells={cells} onCells={setCells} onClose={onClose} onSave={save} />;
}

interface EditProps {
  title: string;
  version: number;
  cells: readonly Cell[];
  onCells: (cells: readonly Cell[]) => void;
  onClose: () => void;
  onSave: (row: Columns) => Promise<void>;
}

function EditDialog({ title, version, cells, onCells, onClose, onSave }: EditProps) {
  const { busy, error, setError, run } = useAction();
  const save = () =>
    run(async () => {
      const read = rowFrom(cells);
      if ("fault" in read) return setError(read.fault);
      await onSave(read.row);
    });
  useEffect(() => setError(null), [cells]);
  const actions = (
    <>
      <Button onClick={onClose}>Cancel</Button>
      <Button kind="primary" type="submit" busy={busy}>
        {`Save as version ${version + 1}`}
      </Button>
    </>
  );
  return (
    <Dialog title={title} wide onClose={onClose} onSubmit={() => void save()} actions={actions}>
      <RowForm cells={cells} onCells={onCells} />
      {error !== null && <ErrorNote error={error} />}
    </Dialog>
  );
}
