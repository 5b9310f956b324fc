/** A dialog that scores a data set with the evaluator in the editor, and opens the job at once. */
import { useState } from "preact/hooks";
import { call } from "../api/http";
import { Button } from "../components/button";
import { Dialog } from "../components/dialog";
import { Empty } from "../components/empty";
import { ErrorNote } from "../components/error-note";
import { Field, Select, typedNumber } from "../components/field";
import { Spinner } from "../components/spinner";
import { useAction } from "../components/use-action";
import { useLoaded } from "../components/use-loaded";
import { counted } from "../resources/format";
import { lacksOutputs, unmapped, useAdvice, type MappingLine } from "../resources/mapping-advice";
import { MappingFields } from "../resources/mapping-fields";
import { watchJob } from "../resources/watched-jobs";
import type { DatasetReport, EvaluatorIn, EvaluatorReport, JobReport } from "../api/types";
import { Link, navigate } from "../router";
import type { Draft } from "./draft";
import { isSame } from "./stored-changes";
import { recallInTab, keepInTab } from "../storage";

const LAST = "run-on";

export function RunOnDataset({ draft, evaluator, onClose }: { draft: Draft; evaluator: EvaluatorIn; onClose: () => void }) {
  const sets = useLoaded((signal) => call<DatasetReport[]>("GET", "/v1/datasets", { signal }), []);
  const [chosen, setChosen] = useState(recallInTab(LAST) ?? "");
  const [limit, setLimit] = useState("");
  const [mapping, setMapping] = useState<readonly MappingLine[] | null>(null);
  const { busy, error, run } = useAction();
  const set = sets.value?.find((one) => one.name === chosen) ?? sets.value?.[0] ?? null;
  const { reads, outputs, mapping: suggested, asking } = useAdvice([evaluator], set?.name ?? null, false, [draft.stored?.name ?? "The code"]);
  const lines = mapping ?? suggested;
  const start = () =>
    run(async () => {
      if (set === null) return;
      const body = {
        evaluators: [await referenceOf(draft, evaluator)],
        dataset: set.name,
        mapping: Object.fromEntries(lines.filter(({ field, source }) => field.trim() !== "" && source.trim() !== "").map(({ field, source }) => [field.trim(), source.trim()])),
        config: { limit_samples: typedNumber(limit) },
      };
      const job = await call<JobReport>("POST", "/v1/jobs", { body });
      keepInTab(LAST, set.name);
      watchJob(job);
      navigate(`/jobs/${job.id}`);
    });
  return (
    <Dialog
      title="Run on a data set"
      onClose={onClose}
      onSubmit={() => void start()}
      actions={
        <Button kind="primary" type="submit" busy={busy} disabled={set === null || (mapping === null && asking)}>
          {set === null ? "Run" : `Run on ${limit.trim() === "" ? counted(set.rows, "row") : `the first ${limit}`}`}
        </Button>
      }
    >
      {sets.error !== null && <ErrorNote error={sets.error} onRetry={sets.reload} />}
      {sets.value === null && sets.error === null && <Spinner label="Loading data sets" />}
      {sets.value?.length === 0 && (
        <Empty title="No data sets yet">
          <p>
            <Link to="/datasets">Upload a file</Link>, or load the sample data there.
          </p>
        </Empty>
      )}
      {set !== null && (
        <>
          <div class="field-row line">
            <Select
              label="Data set"
              value={set.name}
              options={(sets.value ?? []).map((one) => ({ value: one.name, label: `${one.name} (${counted(one.rows, "row")})` }))}
              onValue={(name) => {
                setChosen(name);
                setMapping(null);
              }}
            />
            <Field label="First N rows" type="number" min={1} placeholder="All rows" value={limit} onValue={setLimit} />
          </div>
          <details open={lines.length > 0 || (outputs && lacksOutputs(set.columns, lines)) || unmapped(set.columns, reads, lines).length > 0}>
            <summary>Mapping</summary>
            <MappingFields mapping={lines} columns={set.columns} reads={reads} outputs={outputs} isSuggested={mapping === null} onMapping={setMapping} />
          </details>
        </>
      )}
      {error !== null && <ErrorNote title="The job cannot start" error={error} />}
    </Dialog>
  );
}

/** The reference of the stored version if the draft is unchanged, so that the job counts among its jobs; else the code itself. */
async function referenceOf(draft: Draft, evaluator: EvaluatorIn): Promise<string | EvaluatorIn> {
  if (draft.stored === null) return evaluator;
  const { name, version } = draft.stored;
  try {
    const report = await call<EvaluatorReport>("GET", `/v1/evaluators/${encodeURIComponent(name)}/versions/${version}`);
    return isSame(draft, evaluator, report.evaluator) ? `${name}@${version}` : evaluator;
  } catch {
    return evaluator;
  }
}
