import { useState } from "preact/hooks";
import { Button } from "../components/button";
import { Field, Select } from "../components/field";
import { Link } from "../router";
import type { EvaluatorReport } from "../api/types";

interface ChoiceProps {
  evaluators: readonly EvaluatorReport[];
  /** References: `name`, `name@3`. */
  chosen: readonly string[];
  onChosen: (chosen: readonly string[]) => void;
}

/** Chooses the stored evaluators of a job, in the newest or a specific version. */
export function EvaluatorChoice({ evaluators, chosen, onChosen }: ChoiceProps) {
  const [text, setText] = useState("");
  const [other, setOther] = useState("");
  const [before] = useState(chosen); // the chosen one comes first, because a long list would hide it
  if (evaluators.length === 0) {
    return (
      <p class="muted">
        There is no stored evaluator yet: write one in the <Link to="/">workbench</Link> and save it under a name.
      </p>
    );
  }
  const nameOf = (reference: string) => reference.replace(/@\d+$|@latest$/, "");
  const toggle = (name: string) => onChosen(chosen.some((one) => nameOf(one) === name) ? chosen.filter((one) => nameOf(one) !== name) : [...chosen, name]);
  const add = () => {
    if (other.trim() !== "" && !chosen.includes(other.trim())) onChosen([...chosen, other.trim()]);
    setOther("");
  };
  const isBefore = (name: string) => before.some((reference) => nameOf(reference) === name);
  const found = evaluators.filter((one) => one.name.toLowerCase().includes(text.trim().toLowerCase()));
  const shown = [...found.filter((one) => isBefore(one.name)), ...found.filter((one) => !isBefore(one.name))];
  const named = chosen.filter((reference) => /@/.test(reference) || !evaluators.some((one) => one.name === reference));
  return (
    <div class="stack">
      {evaluators.length > 8 && <Field label="Find an evaluator" bare type="search" placeholder="Find…" value={text} onValue={setText} />}
      <ul class="choices stack-tight choices-tall">
        {shown.map((one) => (
          <li key={one.name}>
            <label class="check">
              <input type="checkbox" checked={chosen.some((reference) => nameOf(reference) === one.name)} onChange={() => toggle(one.name)} />
              <span>{one.name}</span>
            </label>
            <Version evaluator={one} chosen={chosen.find((reference) => nameOf(reference) === one.name)} onChange={(before, now) => onChosen([...new Set(chosen.map((reference) => (reference === before ? now : reference)))])} />
          </li>
        ))}
      </ul>
      {named.length > 0 && (
        <p class="chips">
          {named.map((reference) => (
            <span key={reference} class="chip chip-accent">
              {reference}
              <button type="button" class="chip-remove" aria-label={`Remove ${reference}`} onClick={() => onChosen(chosen.filter((one) => one !== reference))}>
                <span aria-hidden="true">×</span>
              </button>
            </span>
          ))}
        </p>
      )}
      <div class="field-row line">
        <Field label="Specific version" bare placeholder="Specific version: name@3" value={other} spellcheck={false} onValue={setOther} />
        <Button onClick={add} disabled={other.trim() === ""}>
          Add
        </Button>
      </div>
    </div>
  );
}

/** The version of an evaluator; a menu for a chosen one with several versions. */
function Version({ evaluator: { name, latest }, chosen, onChange }: { evaluator: EvaluatorReport; chosen: string | undefined; onChange: (before: string, now: string) => void }) {
  if (chosen === undefined || latest === 1) return <span class="muted">version {latest}</span>;
  const versions = Array.from({ length: latest }, (_, at) => ({ value: `${name}@${latest - at}`, label: `version ${latest - at}` }));
  const options = [{ value: name, label: `newest (${latest})` }, ...versions];
  const other = options.some(({ value }) => value === chosen) ? [] : [{ value: chosen, label: chosen }];
  return <Select label={`Version of ${name}`} bare value={chosen} options={[...other, ...options]} onValue={(now) => onChange(chosen, now)} />;
}
