/** A dialog that fills the test panel from a row of a data set or from a live trace. */
import { useState } from "preact/hooks";
import { call } from "../api/http";
import { Button } from "../components/button";
import { Dialog } from "../components/dialog";
import { Empty } from "../components/empty";
import { ErrorNote } from "../components/error-note";
import { Field, Select } from "../components/field";
import { Spinner } from "../components/spinner";
import { useLoaded } from "../components/use-loaded";
import { shownJson } from "../json";
import type { DatasetReport, EvaluatorReport, Row } from "../api/types";
import { type Draft, rowOfRecord, rowTexts } from "./draft";

const NO_ROW = {};

export function FillDialog({ onClose, onRow }: { onClose: () => void; onRow: (row: Draft["row"]) => void }) {
  const [source, setSource] = useState<"dataset" | "trace">("dataset");
  const take = (row: Row) => {
    onRow(rowTexts(row));
    onClose();
  };
  return (
    <Dialog title="Use a stored row" onClose={onClose} wide>
      <div class="segments" role="group" aria-label="From where">
        <button type="button" aria-pressed={source === "dataset"} onClick={() => setSource("dataset")}>
          Data set
        </button>
        <button type="button" aria-pressed={source === "trace"} onClick={() => setSource("trace")}>
          Live trace
        </button>
      </div>
      {source === "dataset" ? <FromDataset take={take} /> : <FromTraces take={take} />}
    </Dialog>
  );
}

function FromDataset({ take }: { take: (row: Row) => void }) {
  const sets = useLoaded((signal) => call<DatasetReport[]>("GET", "/v1/datasets", { signal }), []);
  const [chosen, setChosen] = useState("");
  const [index, setIndex] = useState("0");
  const name = chosen || sets.value?.[0]?.name || "";
  const first = Math.max(0, Math.trunc(Number(index)) || 0);
  const record = useLoaded<Record<string, unknown> | null>(
    async (signal) => (name === "" ? null : ((await call<Record<string, unknown>[]>("GET", `/v1/datasets/${encodeURIComponent(name)}/rows`, { query: { first, limit: 1 }, signal }))[0] ?? null)),
    [name, first],
  );
  if (sets.error) return <ErrorNote error={sets.error} onRetry={sets.reload} />;
  if (sets.value === null) return <Spinner label="Loading data sets" />;
  if (sets.value.length === 0) return <Empty title="No data sets yet">Upload one on the “Data sets” page: CSV, JSON, JSON Lines or Parquet.</Empty>;
  const row = record.value === null ? null : rowOfRecord(record.value);
  return (
    <>
      <div class="fill-choice">
        <Select label="Data set" value={name} onValue={setChosen} options={sets.value.map((one) => ({ value: one.name, label: `${one.name} (${one.rows} rows)` }))} />
        <Field label="Row" type="number" min={0} step={1} value={index} onValue={setIndex} hint="The first row is 0." />
      </div>
      {record.error !== null && <ErrorNote error={record.error} />}
      {row === null && !record.loading && record.error === null && <Empty title={`There is no row ${first}`} />}
      {row !== null && <Preview row={row} onTake={() => take(row)} />}
    </>
  );
}

interface TraceReport {
  number: number;
  trace_id: string;
  received_at: string;
  trace: Record<string, unknown>;
}

function FromTraces({ take }: { take: (row: Row) => void }) {
  const evaluators = useLoaded((signal) => call<EvaluatorReport[]>("GET", "/v1/evaluators", { signal }), []);
  const [chosen, setChosen] = useState("");
  const [number, setNumber] = useState("");
  const name = chosen || evaluators.value?.[0]?.name || "";
  const traces = useLoaded(
    async (signal) => (name === "" ? [] : call<TraceReport[]>("GET", `/v1/evaluators/${encodeURIComponent(name)}/traces`, { query: { limit: 50 }, signal })),
    [name],
  );
  if (evaluators.error) return <ErrorNote error={evaluators.error} onRetry={evaluators.reload} />;
  if (evaluators.value === null) return <Spinner label="Loading evaluators" />;
  if (evaluators.value.length === 0) return <Empty title="There are no traces yet">Save an evaluator, then point an OpenTelemetry exporter at it.</Empty>;
  const trace = traces.value?.find((one) => String(one.number) === number) ?? traces.value?.[0] ?? null;
  return (
    <>
      <div class="fill-choice">
        <Select label="Evaluator" value={name} onValue={setChosen} options={evaluators.value.map((one) => ({ value: one.name, label: one.name }))} />
        {trace !== null && (
          <Select
            label="Trace"
            value={String(trace.number)}
            onValue={setNumber}
            options={(traces.value ?? []).map((one) => ({ value: String(one.number), label: `${new Date(one.received_at).toLocaleString()} · ${one.trace_id.slice(0, 12)}` }))}
          />
        )}
      </div>
      {traces.error !== null && <ErrorNote error={traces.error} />}
      {trace === null && !traces.loading && traces.error === null && <Empty title={`${name} has no traces yet`} />}
      {trace !== null && <Preview row={{ trace: trace.trace }} onTake={() => take({ inputs: NO_ROW, trace: trace.trace })} />}
    </>
  );
}

function Preview({ row, onTake }: { row: Row; onTake: () => void }) {
  const { text, left } = shownJson(row, 6000);
  return (
    <>
      <pre class="output" tabIndex={0} role="region" aria-label="The row">
        {text}
        {left > 0 && "…"}
      </pre>
      <div>
        <Button kind="primary" onClick={onTake}>
          Use this row
        </Button>
      </div>
    </>
  );
}
