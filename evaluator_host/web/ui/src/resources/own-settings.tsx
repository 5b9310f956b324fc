import { useState } from "preact/hooks";
import { ApiError } from "../api/http";
import { ErrorNote } from "../components/error-note";
import { Spinner } from "../components/spinner";
import { EMPTY, type Faults, toEvaluator, withStored } from "../workbench/draft";
import { stored } from "../workbench/from-query";
import { SettingsFields } from "../workbench/settings";
import { isChanged, type Own } from "./job-form";

interface Props {
  chosen: readonly string[];
  own: Readonly<Record<string, Own>>;
  onOwn: (reference: string, own: Own) => void;
  /** The error if the job was refused. */
  refused: unknown;
}

/** The settings of each chosen evaluator in this job: threshold, arguments, limits. */
export function OwnSettings({ chosen, own, onOwn, refused }: Props) {
  if (chosen.length === 0) return null;
  return (
    <ul class="choices stack-tight own-settings" aria-label="Settings in this job">
      {chosen.map((reference, position) => (
        <li key={reference}>
          <One reference={reference} own={own[reference] ?? null} onOwn={(one) => onOwn(reference, one)} refused={refusedAt(refused, position)} />
        </li>
      ))}
    </ul>
  );
}

interface OneProps {
  reference: string;
  own: Own | null;
  onOwn: (own: Own) => void;
  refused: Faults;
}

function One({ reference, own, onOwn, refused }: OneProps) {
  const [fault, setFault] = useState<unknown>(null);
  const [open, setOpen] = useState(false);
  const load = async () => {
    if (own !== null) return;
    try {
      onOwn(await ownOf(reference));
      setFault(null);
    } catch (problem) {
      setFault(problem);
    }
  };
  const faults = own === null ? {} : { ...refused, ...toEvaluator(own.draft).faults };
  const changed = own !== null && own.stored !== null && isChanged(own);
  return (
    <details open={open || Object.keys(faults).length > 0} onToggle={(event) => (setOpen(event.currentTarget.open), event.currentTarget.open && void load())}>
      <summary>
        Settings of {reference}
        <span class="muted">{own === null ? ": pass threshold, limits…" : ""}{changed ? " · changed for this job" : own !== null && own.stored === null ? " · as in the previous job" : ""}</span>
      </summary>
      {fault !== null && <ErrorNote error={fault} onRetry={() => void load()} />}
      {own === null && fault === null && <Spinner label={`Loading ${reference}`} />}
      {changed && <p class="field-hint small">The job runs an unnamed copy with these settings. The stored evaluator does not change.</p>}
      {own !== null && <SettingsFields draft={own.draft} faults={faults} report={{ contract: own.contract, classes: [] }} change={(changes) => onOwn({ ...own, draft: { ...own.draft, ...changes } })} />}
    </details>
  );
}

/** The settings of a stored evaluator, to be changed for this job. */
async function ownOf(reference: string): Promise<Own> {
  const report = await stored(reference);
  const draft = withStored(EMPTY, report.evaluator, { name: report.name, version: report.version });
  return { draft, stored: draft, contract: report.contract };
}

/** Return the problems of one evaluator's fields, such as `evaluators.0.limits.timeout_s`. */
function refusedAt(refused: unknown, position: number): Faults {
  const problems = refused instanceof ApiError ? refused.problems : [];
  const start = `evaluators.${position}.`;
  const own = problems.filter(({ field }) => field.startsWith(start));
  return Object.fromEntries(own.map(({ field, message }) => [field.slice(start.length).replace(/^(limits|settings)\./, ""), message]));
}
