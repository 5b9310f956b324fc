import { call } from "../api/http";
import { JsonEditor } from "../components/json-editor";
import { Field, Labelled, Select, TextArea } from "../components/field";
import { useLoaded } from "../components/use-loaded";
import type { JobForm, TargetForm } from "./job-form";
import type { SecretReport } from "../api/types";

/** The fields of the model that writes the outputs first. */
export function TargetFields({ form, onChange }: { form: JobForm; onChange: (changes: Partial<JobForm>) => void }) {
  return (
    <div class="stack">
      <label class="check">
        <input type="checkbox" checked={form.asksModel} onChange={(event) => onChange({ asksModel: event.currentTarget.checked })} />
        <span>
          Generate the outputs with a model first <span class="muted">(any API that is compatible with OpenAI’s chat completions)</span>
        </span>
      </label>
      {form.asksModel && <Fields target={form.target} onTarget={(target) => onChange({ target })} />}
    </div>
  );
}

function Fields({ target, onTarget }: { target: TargetForm; onTarget: (target: TargetForm) => void }) {
  const secrets = useLoaded((signal) => call<SecretReport[]>("GET", "/v1/secrets", { signal }), []);
  const set = (changes: Partial<TargetForm>) => onTarget({ ...target, ...changes });
  const options = [{ value: "", label: "None" }, ...(secrets.value ?? []).map(({ name }) => ({ value: name, label: name }))];
  if (target.secret !== "" && !options.some((one) => one.value === target.secret)) options.push({ value: target.secret, label: target.secret });
  return (
    <>
      <div class="field-row line">
        <Field label="Base URL" placeholder="https://host/v1" spellcheck={false} value={target.base_url} onValue={(base_url) => set({ base_url })} />
        <Field label="Model" spellcheck={false} value={target.model} onValue={(model) => set({ model })} />
        <Select label="API key" value={target.secret} options={options} onValue={(secret) => set({ secret })} hint="A stored secret; create one with evaluator-host secrets set" />
      </div>
      <TextArea label="System message" value={target.system} onValue={(system) => set({ system })} rows={2} />
      <TextArea label="Prompt" value={target.prompt} onValue={(prompt) => set({ prompt })} rows={4} hint={target.messages.length > 0 ? `If empty, the ${target.messages.length} messages of the previous job are sent` : "A template that can use columns: {{ question }}"} />
      <Labelled label="Inference settings" hint={'Sent with every request: {"temperature": 0, "max_tokens": 20}'}>
        {() => <JsonEditor label="Inference settings" value={target.inference} onValue={(inference) => set({ inference })} />}
      </Labelled>
      <div class="field-row line">
        <Field label="Parallel requests" type="number" min={1} max={256} value={target.concurrency} onValue={(concurrency) => set({ concurrency })} />
        <Field label="Timeout (s)" type="number" min={1} max={3600} value={target.timeout_s} onValue={(timeout_s) => set({ timeout_s })} />
        <Field label="Retries" type="number" min={0} max={20} value={target.retries} onValue={(retries) => set({ retries })} />
      </div>
    </>
  );
}
