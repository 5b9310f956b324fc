/** The row to try an evaluator on: its fields as JSON, where they come from, and the button that runs it. */
import { useState } from "preact/hooks";
import { Button } from "../components/button";
import { JsonEditor } from "../components/json-editor";
import { useHost } from "../host";
import { readJson } from "../json";
import { type Draft, type Faults, type RowField, rowTexts } from "./draft";
import { StoredRows } from "./stored-rows";

const LABELS: Record<RowField, { label: string; hint: string }> = {
  inputs: { label: "Inputs", hint: '{"question": "…", "correct_answer": "…"}' },
  outputs: { label: "Outputs", hint: '"what your application answered"' },
  messages: { label: "Messages", hint: '[{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}]' },
  trace: { label: "Trace", hint: '{"spans": […]}, or OTLP/JSON' },
  variables: { label: "Variables", hint: "Arguments of the function by name; if empty, it gets the inputs and outputs" },
  criteria: { label: "Criteria", hint: "Evaluation criteria of this row" },
};

/** The fields of a row for a contract, including those that only some contracts take. */
function fieldsOf(takes: readonly string[]): readonly RowField[] {
  const messages: RowField[] = takes.includes("messages") ? ["messages"] : [];
  if (takes.includes("variables")) return ["variables", "inputs", "outputs", ...messages];
  return takes.includes("criteria") ? ["inputs", "outputs", "trace", "criteria"] : ["inputs", "outputs", "trace"];
}

interface TestPanelProps {
  row: Draft["row"];
  /** The columns that the code reads. */
  reads: readonly string[];
  onRow: (row: Draft["row"]) => void;
  contract: string | null;
  /** Criteria to fill in, if the evaluator declares them. */
  criteria: unknown;
  faults: Faults;
  running: boolean;
  onRun: () => void;
  onStop: () => void;
  onRunOnDataset: () => void;
}

export function TestPanel({ row, reads, onRow, contract, criteria, faults, running, onRun, onStop, onRunOnDataset }: TestPanelProps) {
  const [filling, setFilling] = useState(false);
  const host = useHost();
  const native = contract === null ? undefined : host?.contract_rows[contract];
  const wanted = fieldsOf(contract === null ? [] : (host?.contract_fields[contract] ?? []));
  const fields = (Object.keys(LABELS) as RowField[]).filter((field) => wanted.includes(field) || row[field] !== "").sort((one, other) => order(wanted, one) - order(wanted, other));
  return (
    <section class="panel test-panel" aria-labelledby="test-title">
      <header class="panel-head">
        <h2 id="test-title">Test row</h2>
        <Button kind="quiet" small onClick={() => setFilling(true)}>
          Use a stored row…
        </Button>
      </header>
      <div class="panel-body stack">
        {fields.map((field) => (
          <RowEditor key={field} field={field} text={row[field]} fault={faults[field]} native={field === "variables" ? native : undefined} start={field === "criteria" ? criteria : field === "variables" ? (native ?? null) : null} onText={(text) => onRow({ ...row, [field]: text })} onRun={onRun} />
        ))}
      </div>
      <footer class="test-run">
        {running ? (
          <Button onClick={onStop}>
            <span class="spinner-ring" aria-hidden="true" /> Stop
          </Button>
        ) : (
          <Button kind="primary" onClick={onRun}>
            Run
          </Button>
        )}
        <Button onClick={onRunOnDataset}>Run on a data set…</Button>
        <span class="muted test-key">
          <kbd>Ctrl</kbd> <kbd>Enter</kbd>
        </span>
      </footer>
      {filling && <StoredRows reads={reads} room={1} onClose={() => setFilling(false)} onTake={([taken]) => taken && onRow(rowTexts(taken.row))} />}
    </section>
  );
}

function order(wanted: readonly RowField[], field: RowField): number {
  return wanted.includes(field) ? wanted.indexOf(field) : wanted.length;
}

function RowEditor({ field, text, fault, native, start, onText, onRun }: { field: RowField; text: string; fault: string | undefined; native: unknown; start: unknown; onText: (text: string) => void; onRun: () => void }) {
  const { label, hint } = native === undefined ? LABELS[field] : { label: "Row in the platform’s format", hint: JSON.stringify(native) };
  const broken = !readJson(text).ok;
  return (
    <div class="row-field stack-tight">
      <span class="field-label">{label}</span>
      <JsonEditor label={label} value={text} onValue={onText} hint={hint} onSubmit={onRun} />
      {!broken && fault && (
        <p class="field-error" role="status">
          {fault}
        </p>
      )}
      {native !== undefined && text === "" && <p class="muted">If you leave this empty, the host makes the row from the inputs and outputs.</p>}
      {text === "" && start !== null && (
        <Button small onClick={() => onText(JSON.stringify(start, null, 2))}>
          {native === undefined ? "Start from its fields" : "Start from an example"}
        </Button>
      )}
      {broken && (field === "outputs" || field === "criteria") && (
        <Button small onClick={() => onText(JSON.stringify(text))}>
          Use it as text
        </Button>
      )}
    </div>
  );
}
