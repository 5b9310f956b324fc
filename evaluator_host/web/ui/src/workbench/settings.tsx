/** The settings of an evaluator: its call, its threshold, and what it may use. */
import { useState } from "preact/hooks";
import { Button } from "../components/button";
import { Field, Select } from "../components/field";
import { JsonEditor } from "../components/json-editor";
import { PythonSelect } from "../components/python-select";
import { useHost } from "../host";
import { readJson } from "../json";
import type { CheckReport, Limits } from "../api/types";
import { classOf } from "./classes";
import { type Draft, type Faults, LIMITS } from "./draft";

const LIMIT_LABELS: Record<keyof Limits, string> = {
  timeout_s: "Timeout (s)",
  memory_mb: "Memory (MB)",
  processes: "Processes",
  disk_mb: "Disk (MB)",
  log_kb: "Logs (KB)",
  result_kb: "Result (KB)",
};

interface FieldsProps {
  draft: Draft;
  change: (changes: Partial<Draft>) => void;
  faults: Faults;
  /** Facts about the code from its check. */
  report: Pick<CheckReport, "contract" | "classes"> | null;
}

export function SettingsPanel(props: FieldsProps) {
  const { draft, faults } = props;
  const host = useHost();
  const [open, setOpen] = useState(() => new URLSearchParams(location.search).has("settings"));
  const changed = LIMITS.filter((name) => draft.limits[name] !== "" && Number(draft.limits[name]) !== host?.default_limits[name]).length;
  const isSet = draft.policy !== "none" || Object.values(draft.settings).some((value) => value !== "");
  return (
    <details class="settings" open={open || Object.keys(faults).length > 0} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        Settings
        <span class="muted">
          {draft.threshold !== "" ? ` · passes at ${draft.threshold}` : " · no pass threshold"}
          {changed > 0 ? ` · ${changed} ${changed === 1 ? "limit" : "limits"} changed` : ""}
          {draft.language === "python" && draft.python !== null ? ` · Python ${draft.python}` : ""}
          {draft.contract !== "auto" ? ` · contract ${draft.contract}` : ""}
          {isSet ? " · others set" : ""}
        </span>
      </summary>
      <SettingsFields {...props} />
    </details>
  );
}

/** The grants of the code, each as a list separated by commas. */
function Grants({ draft, change }: Pick<FieldsProps, "draft" | "change">) {
  const { models = [], network = [], secrets = {}, budget = { requests: null, tokens: null, cost: null } } = draft.grants ?? {};
  const set = (changes: Partial<NonNullable<Draft["grants"]>>) => change({ grants: { models, network, secrets, budget, ...changes } });
  return (
    <fieldset class="settings-grid">
      <legend class="field-label">Access</legend>
      <Listed label="Models" hint="Registered models that the code may call." value={models.join(", ")} placeholder="none" onValue={(names) => set({ models: names })} />
      <Listed label="Hosts" hint="Other hosts that the code may reach." value={network.join(", ")} placeholder="none" onValue={(hosts) => set({ network: hosts })} />
      <Listed
        label="Secrets"
        hint="VARIABLE=name of a secret."
        value={Object.entries(secrets)
          .map((one) => one.join("="))
          .join(", ")}
        placeholder="none"
        onValue={(pairs) => set({ secrets: Object.fromEntries(pairs.map((one) => [one.split("=")[0]!.trim(), one.slice(one.indexOf("=") + 1).trim()])) })}
      />
      <Field label="Requests per row" hint="Maximum number of requests to models." type="number" min={0} value={budget.requests === null ? "" : String(budget.requests)} placeholder="the host’s limit" onValue={(text) => set({ budget: { ...budget, requests: text === "" ? null : Math.max(0, Math.round(Number(text))) } })} />
    </fieldset>
  );
}

/** A field for a list separated by commas, which is read when the field loses the focus. */
function Listed({ value, onValue, ...rest }: { label: string; hint: string; value: string; placeholder: string; onValue: (names: string[]) => void }) {
  const [text, setText] = useState<string | null>(null);
  const read = (written: string) => written.split(",").map((one) => one.trim()).filter((one) => one !== "");
  return (
    <Field
      {...rest}
      value={text ?? value}
      spellcheck={false}
      onValue={(written) => {
        setText(written);
        onValue(read(written));
      }}
    />
  );
}

/** The fields without the panel around them. */
export function SettingsFields({ draft, change, faults, report }: FieldsProps) {
  const host = useHost();
  const contracts = [{ value: "auto", label: "Detect automatically" }, ...(host?.contracts ?? []).filter((name) => name !== "auto").map((name) => ({ value: name, label: name }))];
  const applies = draft.contract === "auto" ? (report?.contract ?? null) : draft.contract;
  const takes = applies === null ? [] : (host?.contract_fields[applies] ?? []);
  const defaults = classOf(report, draft)?.config ?? null;
  const names = (report?.classes ?? []).map((one) => one.name);
  const set = (changes: Partial<Draft["settings"]>) => change({ settings: { ...draft.settings, ...changes } });
  return (
    <>
      <div class="settings-grid">
        <Field label="Pass threshold" hint={thresholdHint(draft.threshold) ?? "The lowest score that passes, unless the code itself returns `passed`."} type="number" step="any" value={draft.threshold} error={faults["threshold"]} onValue={(threshold) => change({ threshold })} placeholder="none" />
        <Select label="Contract" hint="How the code is called." value={draft.contract} options={contracts} onValue={(value) => change({ contract: value })} />
        <Field label="Entry" hint={names.length > 1 ? `One of ${names.join(", ")}` : "The function or class to call, if the code has several."} value={draft.settings.entry} onValue={(entry) => set({ entry })} placeholder="automatic" spellcheck={false} />
        {takes.includes("correct_answer_key") && (
          <Field label="Correct answer key" hint="The input that is passed as the fourth argument." value={draft.settings.correct_answer_key} onValue={(value) => set({ correct_answer_key: value })} placeholder="correct_answer" spellcheck={false} />
        )}
        {takes.includes("score_output") && <Field label="Score output" hint="Name of the score that counts, if there are several." value={draft.settings.score_output} onValue={(value) => set({ score_output: value })} placeholder="automatic" spellcheck={false} />}
        {draft.language !== "python" && (
          <Select
            label="Large integers"
            hint="How the code gets integers beyond 2^53; as numbers they are rounded."
            value={draft.settings.integers ?? ""}
            options={[
              { value: "", label: "numbers" },
              { value: "bigint", label: "bigint" },
              { value: "text", label: "text" },
            ]}
            onValue={(value) => set({ integers: value === "" ? null : (value as "bigint" | "text") })}
          />
        )}
        {draft.language === "python" && <PythonSelect value={draft.python} onValue={(python) => change({ python })} />}
        {draft.language === "python" && (
          <Select
            label="Restrictions"
            hint="In addition to the sandbox."
            value={draft.policy}
            options={[
              { value: "none", label: "None" },
              { value: "restricted", label: "RestrictedPython" },
            ]}
            onValue={(policy) => change({ policy: policy as Draft["policy"] })}
          />
        )}
      </div>
      {takes.includes("config") && (
        <div class="settings-config stack-tight">
          <span class="field-label">Arguments of the class</span>
          <JsonEditor label="Arguments of the class" value={draft.settings.config} onValue={(config) => set({ config })} hint="{}" />
          {faults["config"] && readJson(draft.settings.config).ok && <p class="field-error">{faults["config"]}</p>}
          {defaults !== null && (
            <div>
              <Button small onClick={() => set({ config: JSON.stringify(defaults, null, 2) })}>
                Start from the defaults
              </Button>
            </div>
          )}
        </div>
      )}
      <Grants draft={draft} change={change} />
      <fieldset class="settings-grid settings-limits">
        <legend class="field-label">Limits per row</legend>
        {LIMITS.map((name) => (
          <Field
            key={name}
            label={LIMIT_LABELS[name]}
            type="number"
            step="any"
            value={draft.limits[name]}
            error={faults[name]}
            placeholder={host === null ? "" : String(host.default_limits[name])}
            hint={host === null ? "" : `at most ${host.limit_ceilings[name]}`}
            onValue={(value) => change({ limits: { ...draft.limits, [name]: value } })}
          />
        ))}
      </fieldset>
    </>
  );
}

/** What was probably meant by a threshold that no score from 0 to 1 reaches; null for a usual threshold. */
function thresholdHint(text: string): string | null {
  const given = Number(text);
  if (text.trim() === "" || (given >= 0 && given <= 1)) return null;
  const meant = given > 10 && given <= 100 ? `did you mean ${given / 100}?` : "is that a score of this code?";
  return `Scores are normally 0 to 1: ${meant}`;
}
