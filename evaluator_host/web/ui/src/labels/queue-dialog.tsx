/** A dialog that creates a label queue from rows of a job or of a data set. */
import { useState } from "preact/hooks";
import { call } from "../api/http";
import { Button } from "../components/button";
import { Dialog } from "../components/dialog";
import { ErrorNote } from "../components/error-note";
import { Field, Select, TextArea, typedNumber } from "../components/field";
import { useAction } from "../components/use-action";
import { useLoaded } from "../components/use-loaded";
import { Link, navigate } from "../router";
import { titleAmong } from "../resources/format";
import type { DatasetReport, JobReport, LabelQueue } from "../api/types";

const KINDS = [
  { value: "passed", label: "Passed or not" },
  { value: "choice", label: "One of several choices" },
  { value: "score", label: "A score" },
];
const ROWS = [
  { value: "all", label: "All rows" },
  { value: "failed", label: "Failed" },
  { value: "not_passed", label: "Not passed" },
  { value: "passed", label: "Passed" },
  { value: "scored", label: "Scored" },
];

export function QueueDialog({ query, onClose }: { query: URLSearchParams; onClose: () => void }) {
  const jobs = useLoaded((signal) => call<JobReport[]>("GET", "/v1/jobs", { signal, query: { limit: 100 } }), []);
  const sets = useLoaded((signal) => call<DatasetReport[]>("GET", "/v1/datasets", { signal }), []);
  const [given, setGiven] = useState({ name: "", kind: "passed", choices: "", min: "0", max: "1", rows: ROWS.find(({ value }) => value === query.get("rows"))?.value ?? "all", limit: "100", instructions: "", results: false });
  const [chosen, setChosen] = useState(query.has("job") ? `job ${query.get("job")}` : query.has("dataset") ? `dataset ${query.get("dataset")}` : "");
  const { busy, error, run } = useAction();
  const set = (changes: Partial<typeof given>) => setGiven({ ...given, ...changes });
  const sources = [
    ...(jobs.value ?? []).map((one) => ({ value: `job ${one.id}`, label: `Job ${titleAmong(one, jobs.value ?? [])}` })),
    ...(sets.value ?? []).map((one) => ({ value: `dataset ${one.name}`, label: `Data set ${one.name}` })),
  ];
  const source = chosen || sources[0]?.value || "";
  const [from = "", ...rest] = source.split(" ");
  const choices = given.choices.split("\n").map((one) => one.trim()).filter(Boolean);
  const [min, max] = [typedNumber(given.min), typedNumber(given.max)];
  const defined = given.kind === "choice" ? choices.length >= 2 : given.kind !== "score" || (min !== null && max !== null);
  const complete = given.name.trim() !== "" && source !== "" && defined;
  const save = () =>
    run(async () => {
      const kind = given.kind === "score" ? { min, max } : given.kind === "choice" ? { choices } : {};
      const which = from === "job" ? { rows: given.rows } : {};
      const body = { name: given.name.trim(), [from]: rest.join(" "), kind: given.kind, ...kind, ...which, limit: typedNumber(given.limit) ?? undefined, instructions: given.instructions, show_results: given.results };
      const made = await call<LabelQueue>("POST", "/v1/label-queues", { body });
      navigate(`/labels/${encodeURIComponent(made.name)}`);
    });
  const actions = (
    <>
      <Button onClick={onClose}>Cancel</Button>
      <Button kind="primary" type="submit" busy={busy} disabled={!complete}>
        Create the queue
      </Button>
    </>
  );
  return (
    <Dialog title="New label queue" onClose={onClose} onSubmit={() => complete && void save()} actions={actions}>
      <Field label="Name" value={given.name} onValue={(name) => set({ name })} autocomplete="off" spellcheck={false} hint="Use letters, digits, dots, dashes and underscores." />
      {jobs.value?.length === 0 && sets.value?.length === 0 ? (
        <p class="note note-warn">
          There is neither a job nor a data set yet: <Link to="/datasets">upload a file</Link> first.
        </p>
      ) : (
        <Select label="Rows of" value={source} options={sources} onValue={setChosen} />
      )}
      <div class="field-row line">
        {from === "job" && <Select label="Which rows" value={given.rows} options={ROWS} onValue={(rows) => set({ rows })} />}
        <Field label="At most" type="number" min={1} max={10_000} value={given.limit} onValue={(limit) => set({ limit })} hint="Spread evenly over the chosen rows." />
      </div>
      <Select label="A label is" value={given.kind} options={KINDS} onValue={(kind) => set({ kind })} />
      {given.kind === "choice" && <TextArea label="Choices, one per line" rows={4} value={given.choices} onValue={(choices) => set({ choices })} />}
      {given.kind === "score" && (
        <div class="field-row line">
          <Field label="From" type="number" step="any" value={given.min} onValue={(min) => set({ min })} />
          <Field label="To" type="number" step="any" value={given.max} onValue={(max) => set({ max })} />
        </div>
      )}
      <TextArea label="Instructions" rows={3} value={given.instructions} onValue={(instructions) => set({ instructions })} hint="Shown next to each row." />
      <label class="check">
        <input type="checkbox" checked={given.results} onChange={(event) => set({ results: event.currentTarget.checked })} />
        <span>
          Show the evaluators’ results before a row is labelled <span class="muted">(they may influence people)</span>
        </span>
      </label>
      {error !== null && <ErrorNote title="The queue was not created" error={error} />}
    </Dialog>
  );
}
