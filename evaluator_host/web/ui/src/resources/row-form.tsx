/** A form for one row of a data set: a field for each column, as text or as JSON. */
import { useState } from "preact/hooks";
import { Button } from "../components/button";
import { Field, Select, TextArea } from "../components/field";
import { own, readJson } from "../json";
import type { Columns, Json } from "../api/types";

type Kind = "text" | "json" | "none";

export interface Cell {
  name: string;
  kind: Kind;
  text: string;
  /** Whether the column is new, so that its name may be changed. */
  added: boolean;
}

const KINDS: readonly { value: Kind; label: string }[] = [
  { value: "text", label: "Text" },
  { value: "json", label: "JSON" },
  { value: "none", label: "No value" },
];
const TALLEST = 14;

/** The cells of a row: those of the data set's columns, then those of other columns. */
export function cellsOf(columns: readonly string[], row: Columns): Cell[] {
  return [...new Set([...columns, ...Object.keys(row)])].map((name) => cellOf(name, own(row, name)));
}

function cellOf(name: string, value: Json | undefined): Cell {
  if (value === undefined) return { name, kind: "none", text: "", added: false };
  if (typeof value === "string") return { name, kind: "text", text: value, added: false };
  return { name, kind: "json", text: JSON.stringify(value, null, 2), added: false };
}

/** The cells of a new row, of the same kinds as those of another row. */
export function emptyCells(columns: readonly string[], like: Columns): Cell[] {
  const names = columns.length > 0 ? columns : Object.keys(like);
  return names.map((name) => ({ name, kind: ["string", "undefined"].includes(typeof own(like, name)) ? "text" : "json", text: "", added: false }));
}

/** The row in the cells, or the fault in them; an empty JSON cell gives no value. */
export function rowFrom(cells: readonly Cell[]): { row: Columns } | { fault: string } {
  const row = Object.create(null) as Columns;
  for (const { name, kind, text } of cells) {
    if (kind === "none") continue;
    if (name.trim() === "") return { fault: "A column has no name." };
    if (name in row) return { fault: `There are two columns named ${name}.` };
    if (kind === "text") row[name] = text;
    else {
      const read = readJson(text);
      if (!read.ok) return { fault: `${name}: ${read.message}` };
      if (read.given) row[name] = read.value as Json;
    }
  }
  return Object.keys(row).length === 0 ? { fault: "The row has no value." } : { row };
}

export function RowForm({ cells, onCells }: { cells: readonly Cell[]; onCells: (cells: readonly Cell[]) => void }) {
  const change = (at: number, part: Partial<Cell>) => onCells(cells.map((one, place) => (place === at ? { ...one, ...part } : one)));
  return (
    <div class="stack">
      {cells.map((cell, at) => (
        <OneCell key={at} cell={cell} place={at + 1} onChange={(part) => change(at, part)} />
      ))}
      <div>
        <Button small onClick={() => onCells([...cells, { name: "", kind: "text", text: "", added: true }])}>
          Add a column
        </Button>
      </div>
    </div>
  );
}

function OneCell({ cell, place, onChange }: { cell: Cell; place: number; onChange: (part: Partial<Cell>) => void }) {
  const [touched, setTouched] = useState(false);
  const label = cell.name === "" ? `Value of column ${place}` : cell.name;
  const read = cell.kind === "json" ? readJson(cell.text) : null;
  const rows = Math.min(TALLEST, Math.max(1, cell.text.split("\n").length, Math.ceil(cell.text.length / 110)));
  const write = (text: string) => {
    setTouched(true);
    onChange({ text });
  };
  return (
    <div class="row-cell">
      {cell.added && <Field label={`Name of column ${place}`} value={cell.name} onValue={(name) => onChange({ name })} autocomplete="off" />}
      {cell.kind === "none" ? (
        <p class="row-cell-none">
          <span class="field-label">{label}</span> <span class="muted">no value</span>
        </p>
      ) : (
        <TextArea label={label} value={cell.text} onValue={write} rows={rows} class={cell.kind === "json" ? "mono" : ""} error={touched && read?.ok === false ? read.message : null} />
      )}
      <Select label={`Kind of ${label}`} bare value={cell.kind} options={KINDS} onValue={(kind) => onChange({ kind: kind as Kind })} />
    </div>
  );
}
