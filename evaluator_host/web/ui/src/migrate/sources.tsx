/** Chooses a stored legacy evaluator, and the rows for the proof. */
import { call } from "../api/http";
import { Field, Select } from "../components/field";
import { JsonEditor } from "../components/json-editor";
import { useLoaded } from "../components/use-loaded";
import { counted } from "../resources/format";
import type { DatasetReport, EvaluatorReport } from "../api/types";
import { type Legacy, ofStored } from "./legacy";

interface SourceProps {
  legacy: Legacy;
  change: (changes: Partial<Legacy>) => void;
}

/** The stored evaluators of the legacy contracts. */
export function StoredChoice({ legacy, replace }: { legacy: Legacy; replace: (legacy: Legacy) => void }) {
  const all = useLoaded((signal) => call<EvaluatorReport[]>("GET", "/v1/evaluators", { signal }), []);
  const old = (all.value ?? []).filter((one) => one.contract === "evaluate-v1" || one.contract === "main");
  if (old.length === 0) return null;
  const choose = (event: Event & { currentTarget: HTMLSelectElement }) => {
    const report = old.find((one) => one.name === event.currentTarget.value);
    if (report !== undefined) replace(ofStored(report, legacy));
  };
  return (
    <select class="input example-menu" aria-label="Use a stored evaluator" value={legacy.stored?.name ?? ""} onChange={choose}>
      <option value="">Stored evaluators</option>
      {old.map((one) => (
        <option key={one.name} value={one.name}>
          {one.name}@{one.version} ({one.contract})
        </option>
      ))}
    </select>
  );
}

export function ProofChoice({ legacy, change, fault }: SourceProps & { fault: string | null }) {
  const sets = useLoaded(async (signal) => (legacy.proofOn === "dataset" ? call<DatasetReport[]>("GET", "/v1/datasets", { signal }) : null), [legacy.proofOn === "dataset"]);
  return (
    <div class="proof-choice line">
      <Select
        label="Rows for the proof"
        value={legacy.proofOn}
        onValue={(value) => change({ proofOn: value as Legacy["proofOn"] })}
        options={[
          { value: "generated", label: "generated from the code" },
          { value: "rows", label: "my own rows" },
          { value: "dataset", label: "a data set" },
        ]}
      />
      {legacy.proofOn === "rows" && (
        <div class="proof-rows stack-tight">
          <span class="field-label">Rows</span>
          <JsonEditor label="Rows" value={legacy.rows} onValue={(rows) => change({ rows })} hint='[{"inputs": {"correct_answer": "Paris"}, "outputs": "Paris"}]' />
        </div>
      )}
      {legacy.proofOn === "dataset" && (
        <>
          <Select
            label="Data set"
            value={legacy.dataset}
            onValue={(dataset) => change({ dataset })}
            options={[{ value: "", label: sets.value?.length === 0 ? "There are no data sets yet" : "Choose a data set…" }, ...(sets.value ?? []).map((one) => ({ value: one.name, label: `${one.name} (${counted(one.rows, "row")})` }))]}
          />
          <Field label="Mapping" hint='Where fields come from: {"outputs": "answer"}' value={legacy.mapping} onValue={(mapping) => change({ mapping })} spellcheck={false} autocomplete="off" />
        </>
      )}
      {fault && (
        <p class="field-error" role="status">
          {fault}
        </p>
      )}
    </div>
  );
}
