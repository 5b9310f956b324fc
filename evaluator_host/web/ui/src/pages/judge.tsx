/** A judge without code: its form, a row to try it on, and a dialog to save it as a version. */
import { useEffect, useState } from "preact/hooks";
import { call } from "../api/http";
import type { EvaluatorReport, Judge, ReadyJudge, RegisteredModel, Result } from "../api/types";
import { Button } from "../components/button";
import { Empty } from "../components/empty";
import { ErrorNote } from "../components/error-note";
import { Field, Labelled, Select, typedNumber } from "../components/field";
import { JsonEditor } from "../components/json-editor";
import { toast } from "../components/toasts";
import { useAction } from "../components/use-action";
import { useLoaded } from "../components/use-loaded";
import { readJson } from "../json";
import { ModelDialog } from "../resources/model-dialog";
import { PageHead, Panel } from "../resources/parts";
import { Link, navigate } from "../router";
import type { PageProps } from "../routes";
import { ResultCard } from "../workbench/result-card";

interface Form {
  model: string;
  prompt: string;
  system: string;
  answers: "scale" | "labels";
  min: string;
  max: string;
  labels: { label: string; score: string; description: string }[];
  explains: boolean;
  structured: boolean;
  /** The examples, as JSON. */
  examples: string;
  threshold: string;
}

const NEW: Form = {
  model: "",
  prompt: "Question: {{ inputs.question }}\nAnswer: {{ outputs }}",
  system: "",
  answers: "scale",
  min: "1",
  max: "5",
  labels: [
    { label: "good", score: "1", description: "" },
    { label: "bad", score: "0", description: "" },
  ],
  explains: true,
  structured: true,
  examples: "",
  threshold: "",
};

const ROW = { inputs: '{"question": "What is the capital of France?"}', outputs: '"Paris"' };

export default function JudgePage({ query }: PageProps) {
  const stored = query.get("evaluator");
  const models = useLoaded((signal) => call<RegisteredModel[]>("GET", "/v1/models", { signal }), []);
  const [form, setForm] = useState<Form>({ ...NEW, model: query.get("model") ?? "" });
  const [name, setName] = useState(stored?.split("@")[0] ?? "");
  const [error, setError] = useState<unknown>(null);
  const [adding, setAdding] = useState(false);
  const set = (changes: Partial<Form>) => setForm((before) => ({ ...before, ...changes }));
  const [row, setRow] = useState(ROW);
  const [started, setStarted] = useState("");
  const offered = useLoaded((signal) => call<ReadyJudge[]>("GET", "/v1/ready-judges", { signal }), []);
  useEffect(() => {
    if (stored !== null) read(stored).then(setForm, setError);
  }, [stored]);
  const startFrom = (chosen: string) => {
    const found = offered.value?.find((one) => one.name === chosen);
    setStarted(chosen);
    setForm((before) => ({ ...(found === undefined ? NEW : formOf(found.judge as unknown as Judge, found.threshold)), model: before.model }));
    setName(chosen);
    const tried = found?.cases[0];
    setRow(tried === undefined ? ROW : { inputs: JSON.stringify(tried["inputs"]), outputs: JSON.stringify(tried["outputs"]) });
  };
  const known = models.value ?? [];
  const model = form.model || known[0]?.name || "";
  const { judge, faults } = toJudge({ ...form, model });
  const ready = Object.keys(faults).length === 0 && model !== "" && form.prompt.trim() !== "";
  const evaluator = { judge, threshold: typedNumber(form.threshold) };
  return (
    <div class="page">
      <PageHead title={stored === null ? "New judge" : `Judge ${name}`} up={{ to: "/evaluators", label: "Evaluators" }} />
      {error !== null && <ErrorNote title="The judge could not be loaded or saved" error={error} />}
      {models.value?.length === 0 && (
        <Empty title="There is no model to judge with">
          <p>A judge shows a rubric and the row to a model, and takes the model’s answer as the score. Rubrics for faithfulness, tone, refusal and more are ready, or write your own.</p>
          <p>
            <Button kind="primary" onClick={() => setAdding(true)}>
              Add a model
            </Button>
          </p>
        </Empty>
      )}
      {adding && <ModelDialog given={null} secrets={[]} onClose={() => setAdding(false)} onSaved={models.reload} />}
      {((models.value?.length ?? 0) > 0 || models.error !== null || stored !== null) && (
        <div class="record-columns">
          <div class="record-main stack">
            <Panel title="What the judge asks">
              <div class="stack">
                {stored === null && offered.value !== null && (
                  <Select
                    label="Start from"
                    value={started}
                    hint={offered.value.find((one) => one.name === started)?.description ?? "A ready-made judge with its rubric, or your own words."}
                    options={[{ value: "", label: "Your own words" }, ...offered.value.map((one) => ({ value: one.name, label: one.title }))]}
                    onValue={startFrom}
                  />
                )}
                <Select label="Model" value={model} options={(known.some((one) => one.name === model) || model === "" ? known.map((one) => one.name) : [model, ...known.map((one) => one.name)]).map((value) => ({ value, label: value }))} onValue={(value) => set({ model: value })} />
                <Area label="Prompt" value={form.prompt} hint="A template: {{ inputs.question }}, {{ outputs }}, and columns by name." rows={6} onValue={(prompt) => set({ prompt })} />
                <Area label="System" value={form.system} hint="System message. The host adds instructions on how to answer." rows={3} onValue={(system) => set({ system })} />
              </div>
            </Panel>
            <Answers form={form} set={set} faults={faults} />
            <Panel title="Examples">
              <JsonEditor label="Examples" value={form.examples} onValue={(examples) => set({ examples })} hint='[{"inputs": {"question": "…"}, "outputs": "…", "answer": 1, "reason": "…"}]' />
              <p class="field-hint small">Rows with the right answer, shown to the model before each row: a list with inputs, outputs, answer and reason.</p>
              {faults["examples"] && <p class="field-error">{faults["examples"]}</p>}
            </Panel>
          </div>
          <div class="record-side stack">
            <Try evaluator={evaluator} ready={ready} row={row} setRow={setRow} />
            <Save name={name} stored={stored !== null} setName={setName} evaluator={evaluator} ready={ready} onError={setError} />
          </div>
        </div>
      )}
    </div>
  );
}

function Area({ label, hint, value, rows, onValue }: { label: string; hint: string; value: string; rows: number; onValue: (value: string) => void }) {
  return (
    <Labelled label={label} hint={hint}>
      {({ id, describedBy }) => <textarea class="input" id={id} rows={rows} value={value} aria-describedby={describedBy} spellcheck={false} onInput={(event) => onValue(event.currentTarget.value)} />}
    </Labelled>
  );
}

interface AnswersProps {
  form: Form;
  set: (changes: Partial<Form>) => void;
  faults: Record<string, string>;
}

function Answers({ form, set, faults }: AnswersProps) {
  const change = (index: number, changes: Partial<Form["labels"][number]>) => set({ labels: form.labels.map((one, at) => (at === index ? { ...one, ...changes } : one)) });
  return (
    <Panel title="What the judge answers">
      <div class="stack">
        <Select
          label="Answers"
          value={form.answers}
          options={[
            { value: "scale", label: "A number on a scale" },
            { value: "labels", label: "One of several labels" },
          ]}
          onValue={(answers) => set({ answers: answers as Form["answers"] })}
        />
        {form.answers === "scale" ? (
          <div class="field-row line">
            <Field label="From" type="number" step="any" value={form.min} onValue={(min) => set({ min })} />
            <Field label="To" type="number" step="any" value={form.max} error={faults["scale"]} onValue={(max) => set({ max })} />
          </div>
        ) : (
          <>
            {form.labels.map((one, index) => (
              <div key={index} class="field-row line judge-label" role="group" aria-label={`Label ${index + 1}`}>
                <Field label="Label" value={one.label} onValue={(label) => change(index, { label })} />
                <Field label="Score" type="number" step="any" value={one.score} onValue={(score) => change(index, { score })} />
                <Field label="When" value={one.description} onValue={(description) => change(index, { description })} placeholder="kind words" />
                <Button small kind="quiet" aria-label={`Remove the label ${one.label}`} onClick={() => set({ labels: form.labels.filter((_, at) => at !== index) })}>
                  Remove
                </Button>
              </div>
            ))}
            {faults["labels"] && <p class="field-error">{faults["labels"]}</p>}
            <div>
              <Button small disabled={form.labels.length >= 32} onClick={() => set({ labels: [...form.labels, { label: "", score: "0", description: "" }] })}>
                Add a label
              </Button>
            </div>
          </>
        )}
        <Check label="Give a reason first" checked={form.explains} onChecked={(explains) => set({ explains })} />
        <Check label="Structured output" note="off for models that have no response_format" checked={form.structured} onChecked={(structured) => set({ structured })} />
        <Field label="Pass threshold" type="number" step="any" hint="The lowest score that passes." value={form.threshold} onValue={(threshold) => set({ threshold })} placeholder="none" />
      </div>
    </Panel>
  );
}

function Check({ label, note, checked, onChecked }: { label: string; note?: string; checked: boolean; onChecked: (checked: boolean) => void }) {
  return (
    <label class="check">
      <input type="checkbox" checked={checked} onChange={(event) => onChecked(event.currentTarget.checked)} />
      <span>
        {label} {note && <span class="muted">{note}</span>}
      </span>
    </label>
  );
}

interface GivenEvaluator {
  judge: Judge;
  threshold: number | null;
}

/** A row to try the judge on, and its answer. */
function Try({ evaluator, ready, row, setRow }: { evaluator: GivenEvaluator; ready: boolean; row: typeof ROW; setRow: (row: typeof ROW) => void }) {
  const [result, setResult] = useState<Result | null>(null);
  const { busy, error, run } = useAction();
  const [inputs, outputs] = [readJson(row.inputs), readJson(row.outputs)];
  const judge = () =>
    run(async () => {
      const given = { ...(inputs.ok && inputs.given ? { inputs: inputs.value } : {}), ...(outputs.ok && outputs.given ? { outputs: outputs.value } : {}) };
      setResult(await call<Result>("POST", "/v1/evaluate", { body: { evaluator, ...given } }));
    });
  return (
    <Panel title="Try it">
      <div class="stack">
        <span class="field-label">Inputs</span>
        <JsonEditor label="Inputs" value={row.inputs} onValue={(text) => setRow({ ...row, inputs: text })} />
        <span class="field-label">Outputs</span>
        <JsonEditor label="Outputs" value={row.outputs} onValue={(text) => setRow({ ...row, outputs: text })} />
        <div>
          <Button kind="primary" busy={busy} disabled={!ready || !inputs.ok || !outputs.ok} onClick={() => void judge()}>
            Run the judge
          </Button>
        </div>
        {error !== null && <ErrorNote error={error} />}
        {result !== null && <ResultCard result={result} goTo={() => undefined} />}
      </div>
    </Panel>
  );
}

interface SaveProps {
  name: string;
  stored: boolean;
  setName: (name: string) => void;
  evaluator: GivenEvaluator;
  ready: boolean;
  onError: (error: unknown) => void;
}

/** Saves the judge as a version that jobs can use. */
function Save({ name, stored, setName, evaluator, ready, onError }: SaveProps) {
  const [busy, setBusy] = useState(false);
  const save = async () => {
    setBusy(true);
    onError(null);
    try {
      const report = stored ? await call<EvaluatorReport>("PUT", `/v1/evaluators/${encodeURIComponent(name)}`, { body: evaluator }) : await call<EvaluatorReport>("POST", "/v1/evaluators", { body: { name: name.trim(), ...evaluator } });
      toast(`${report.name} is saved as version ${report.version}`);
      navigate(`/judge?evaluator=${encodeURIComponent(report.name)}`);
    } catch (fault) {
      onError(fault);
    }
    setBusy(false);
  };
  return (
    <Panel title="Save the judge">
      <div class="stack">
        {!stored && <Field label="Name" value={name} onValue={setName} hint="Use letters, digits, dots, dashes and underscores." autocomplete="off" spellcheck={false} />}
        <div>
          <Button kind="primary" busy={busy} disabled={!ready || name.trim() === ""} onClick={() => void save()}>
            {stored ? "Save a new version" : "Save"}
          </Button>
        </div>
        {stored && (
          <p class="muted">
            <Link to={`/jobs/new?evaluator=${encodeURIComponent(name)}`}>Start a job</Link> over rows with a column of labels that people gave; the page of the job then shows how far the judge agrees with them. <Link to={`/evaluators/${encodeURIComponent(name)}`}>All versions</Link>
          </p>
        )}
      </div>
    </Panel>
  );
}

/** The judge that a form describes, and the faults of the form, by field. */
function toJudge(form: Form): { judge: Judge; faults: Record<string, string> } {
  const faults: Record<string, string> = {};
  const examples = readJson(form.examples);
  if (!examples.ok) faults["examples"] = "This is not valid JSON.";
  else if (examples.given && !Array.isArray(examples.value)) faults["examples"] = "This must be a list: [{…}].";
  if (form.answers === "scale" && !(form.min !== "" && form.max !== "" && Number(form.min) < Number(form.max))) faults["scale"] = "The maximum must be greater than the minimum.";
  if (form.answers === "labels" && (form.labels.length < 2 || form.labels.some((one) => one.label.trim() === "" || one.score === ""))) faults["labels"] = "Give two labels or more, each with a score.";
  const labels = form.labels.map((one) => ({ label: one.label.trim(), score: Number(one.score), ...(one.description.trim() === "" ? {} : { description: one.description.trim() }) }));
  const judge = {
    model: form.model,
    prompt: form.prompt,
    ...(form.system.trim() === "" ? {} : { system: form.system }),
    ...(form.answers === "scale" ? { scale: { min: Number(form.min), max: Number(form.max) } } : { labels }),
    explains: form.explains,
    structured: form.structured,
    ...(examples.ok && Array.isArray(examples.value) ? { examples: examples.value } : {}),
  } as Judge;
  return { judge, faults };
}

/** The form of a stored judge. */
async function read(reference: string): Promise<Form> {
  const [name = "", version] = reference.split("@");
  const versions = await call<EvaluatorReport[]>("GET", `/v1/evaluators/${encodeURIComponent(name)}/versions`);
  const shown = versions.find((one) => String(one.version) === version) ?? versions[0];
  const judge = shown?.evaluator.judge as Judge | null | undefined;
  if (!shown || !judge) throw new Error(`${name} is not a judge, because it has code.`);
  return formOf(judge, shown.evaluator.threshold);
}

/** The form that a judge was made from. */
function formOf(judge: Judge, threshold: number | null): Form {
  const labels = (judge.labels ?? []).map((one) => ({ label: one.label, score: String(one.score), description: one.description ?? "" }));
  return {
    ...NEW,
    model: judge.model ?? "",
    prompt: judge.prompt,
    system: judge.system ?? "",
    answers: labels.length > 0 ? "labels" : "scale",
    min: String(judge.scale?.min ?? 0),
    max: String(judge.scale?.max ?? 1),
    labels: labels.length > 0 ? labels : NEW.labels,
    explains: judge.explains ?? true,
    structured: judge.structured ?? true,
    examples: (judge.examples ?? []).length > 0 ? JSON.stringify(judge.examples, null, 2) : "",
    threshold: threshold === null ? "" : String(threshold),
  };
}
