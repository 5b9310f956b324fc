/** Adds a model with its key, allows its host, and tests it; or changes a model. */
import { useState } from "preact/hooks";
import { call } from "../api/http";
import type { ModelHosts, ModelTest, RegisteredModel, SecretReport } from "../api/types";
import { Button } from "../components/button";
import { Dialog } from "../components/dialog";
import { ErrorNote } from "../components/error-note";
import { Field, Select, typedNumber } from "../components/field";
import { toast } from "../components/toasts";
import { useLoaded } from "../components/use-loaded";
import { Link } from "../router";
import { count, rounded, milliseconds } from "./format";

interface Provider {
  value: string;
  label: string;
  kind: RegisteredModel["kind"];
  url: string;
  model: string;
}

const PROVIDERS: readonly Provider[] = [
  { value: "openai", label: "OpenAI", kind: "openai", url: "https://api.openai.com/v1", model: "gpt-4o-mini" },
  { value: "anthropic", label: "Anthropic", kind: "anthropic", url: "https://api.anthropic.com", model: "claude-3-5-haiku-latest" },
  { value: "google", label: "Google", kind: "openai", url: "https://generativelanguage.googleapis.com/v1beta/openai", model: "gemini-2.0-flash" },
  { value: "local", label: "A server on this machine", kind: "openai", url: "http://127.0.0.1:11434/v1", model: "llama3.2" },
  { value: "other", label: "Another provider, compatible with OpenAI", kind: "openai", url: "https://", model: "" },
  { value: "other-anthropic", label: "Another provider, compatible with Anthropic", kind: "anthropic", url: "https://", model: "" },
];

const NEW_KEY = " new";
const NO_KEY = "";

interface ModelDialogProps {
  /** The model to change; null for a new one. */
  given: RegisteredModel | null;
  secrets: readonly SecretReport[];
  onClose: () => void;
  onSaved: () => void;
  /** Called with the outcome of the first question to a new model. */
  onTested?: (name: string, outcome: ModelTest) => void;
}

export function ModelDialog({ given, secrets, onClose, onSaved, onTested }: ModelDialogProps) {
  const hosts = useLoaded((signal) => call<ModelHosts>("GET", "/v1/model-hosts", { signal }), []);
  const [form, setForm] = useState({
    provider: given === null ? "openai" : (PROVIDERS.find((one) => one.url === given.url)?.value ?? (given.kind === "anthropic" ? "other-anthropic" : "other")),
    name: given?.name ?? "",
    url: given?.url ?? PROVIDERS[0]!.url,
    model: given?.model ?? "",
    secret: given === null ? NEW_KEY : (given.secret ?? NO_KEY),
    key: "",
    allow: false,
    input_price: String(given?.input_price ?? ""),
    output_price: String(given?.output_price ?? ""),
    cached_price: String(given?.cached_price ?? ""),
  });
  const [busy, setBusy] = useState<"saving" | "trying" | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [added, setAdded] = useState<{ model: RegisteredModel; outcome: ModelTest | null } | null>(null);
  const [changing, setChanging] = useState(false);
  const set = (changes: Partial<typeof form>) => setForm((before) => ({ ...before, ...changes }));
  const provider = PROVIDERS.find((one) => one.value === form.provider)!;
  const name = form.name.trim() || form.model.trim().replace(/[^A-Za-z0-9._-]+/g, "-");
  const host = hostOf(form.url);
  const asks = host !== null && hosts.value?.may_allow === true && !hosts.value.hosts.includes(host.port);
  const lacks =
    name === "" ? "Enter the model’s name at the provider."
    : form.secret === NEW_KEY && form.key === "" ? "Enter the key of the provider."
    : host === null ? "Enter a URL that begins with https:// or http://."
    : asks && !form.allow ? `Tick the box that allows ${host.name}.`
    : "";
  const known = [...new Set([...secrets.map((one) => one.name), ...(given?.secret != null ? [given.secret] : [])])];
  const ready = lacks === "" && busy === null;
  const save = async () => {
    setBusy("saving");
    setError(null);
    const optional = (text: string) => (text.trim() === "" ? null : text.trim());
    const key = form.secret === NEW_KEY ? { key: form.key } : { secret: optional(form.secret) };
    const body = { kind: provider.kind, url: form.url.trim(), model: optional(form.model), ...key, input_price: typedNumber(form.input_price), output_price: typedNumber(form.output_price), cached_price: typedNumber(form.cached_price), allow_host: asks && form.allow };
    try {
      const path = given === null ? "" : `/${encodeURIComponent(given.name)}`;
      const saved = await call<RegisteredModel>(given === null ? "POST" : "PATCH", `/v1/models${path}`, { body: given === null ? { name, ...body } : body });
      onSaved();
      if (given === null) await test(saved);
      else {
        toast(`${given.name} was changed`);
        onClose();
      }
    } catch (fault) {
      setError(fault);
    }
    setBusy(null);
  };
  const test = async (model: RegisteredModel) => {
    setBusy("trying");
    setAdded({ model, outcome: null });
    const outcome = await tested(model.name);
    setAdded({ model, outcome });
    onTested?.(model.name, outcome);
  };
  if (added !== null && changing) return <ModelDialog given={added.model} secrets={secrets} onClose={onClose} onSaved={onSaved} />;
  if (added !== null) {
    const failed = added.outcome?.ok === false;
    return (
      <Dialog
        title={`${added.model.name} was added`}
        onClose={onClose}
        actions={
          <>
            <Button onClick={onClose}>Close</Button>
            <span onClick={onClose}>
              <Link to={`/judge?model=${encodeURIComponent(added.model.name)}`} class={`button button-${failed ? "plain" : "primary"}`}>
                New judge with this model
              </Link>
            </span>
            {failed && (
              <Button kind="primary" onClick={() => setChanging(true)}>
                Change…
              </Button>
            )}
          </>
        }
      >
        <p role="status">{added.outcome === null ? "The host is asking the model a short question…" : <Outcome outcome={added.outcome} />}</p>
        {failed && <p class="muted">The model is kept: change its address, its name or its key, and test it again in the list of models.</p>}
      </Dialog>
    );
  }
  return (
    <Dialog
      title={given === null ? "Add a model" : `Change ${given.name}`}
      onClose={onClose}
      onSubmit={() => ready && void save()}
      actions={
        <>
          {lacks !== "" && <span class="muted small">{lacks}</span>}
          <Button kind="primary" type="submit" busy={busy !== null} disabled={!ready}>
            {given === null ? "Add and try" : "Save"}
          </Button>
        </>
      }
    >
      <Select label="Provider" value={form.provider} options={PROVIDERS} onValue={(value) => set({ provider: value, url: PROVIDERS.find((one) => one.value === value)!.url, secret: value === "local" ? NO_KEY : form.secret })} />
      <Field label="Model at the provider" value={form.model} onValue={(model) => set({ model })} placeholder={provider.model} spellcheck={false} autocomplete="off" />
      <Select
        label="Key"
        value={form.secret}
        options={[...(given === null ? [{ value: NEW_KEY, label: "A new one" }] : []), { value: NO_KEY, label: "No key" }, ...known.map((one) => ({ value: one, label: `The secret ${one}` }))]}
        onValue={(secret) => set({ secret })}
      />
      {form.secret === NEW_KEY && <Field label="Key of the provider" type="password" value={form.key} onValue={(key) => set({ key })} hint={`Stored encrypted as the secret ${name || "of the model's name"}. It is never shown again, and code never sees it.`} autocomplete="off" />}
      {asks && (
        <label class="check">
          <input type="checkbox" checked={form.allow} onChange={(event) => set({ allow: event.currentTarget.checked })} />
          <span>Evaluators of this host may call models on {host.name}</span>
        </label>
      )}
      <details class="fold" open={provider.value.startsWith("other") || given !== null}>
        <summary>Address, name and prices</summary>
        <div class="stack">
          <Field label="URL" value={form.url} onValue={(url) => set({ url })} spellcheck={false} />
          {given === null && <Field label="Name" value={form.name} onValue={(text) => set({ name: text })} hint="Evaluators refer to the model by this name, such as judge-small." placeholder={name || "judge-small"} autocomplete="off" spellcheck={false} />}
          <div class="field-row line">
            <Field label="Price of a million input tokens" type="number" min={0} step="any" value={form.input_price} onValue={(input_price) => set({ input_price })} placeholder="not known" />
            <Field label="Price of a million output tokens" type="number" min={0} step="any" value={form.output_price} onValue={(output_price) => set({ output_price })} placeholder="not known" />
            <Field label="Price of a million cached input tokens" type="number" min={0} step="any" value={form.cached_price} onValue={(cached_price) => set({ cached_price })} placeholder="as other input" />
          </div>
        </div>
      </details>
      {error !== null && <ErrorNote title={`The model was not ${given === null ? "added" : "changed"}`} error={error} />}
    </Dialog>
  );
}

/** The outcome of a short question to a model, even of a failed request. */
export async function tested(name: string): Promise<ModelTest> {
  try {
    return await call<ModelTest>("POST", `/v1/models/${encodeURIComponent(name)}/test`);
  } catch (fault) {
    return { ok: false, output: null, error: fault instanceof Error ? fault.message : String(fault), latency_ms: 0, input_tokens: 0, output_tokens: 0, cost: null };
  }
}

export function Outcome({ outcome }: { outcome: ModelTest }) {
  if (!outcome.ok) return <span class="cell-error">{outcome.error}</span>;
  return (
    <>
      <span class="chip chip-pass">works</span> {milliseconds(outcome.latency_ms)}, {count(outcome.input_tokens)} + {count(outcome.output_tokens)} tokens
      {outcome.cost !== null && `, cost ${rounded(outcome.cost)}`}
      {outcome.output !== null && <span class="muted"> “{outcome.output}”</span>}
    </>
  );
}

/** The host of a URL, as shown and as `host:port`; null for a string that is not a URL. */
function hostOf(text: string): { name: string; port: string } | null {
  try {
    const url = new URL(text.trim());
    if (url.hostname === "" || !/^https?:$/.test(url.protocol)) return null;
    return { name: url.host, port: `${url.hostname}:${url.port || (url.protocol === "https:" ? "443" : "80")}` };
  } catch {
    return null;
  }
}
