/** Adds rows of a job, or live traces, to a data set: an existing one, or a new one. */
import { useState } from "preact/hooks";
import { call } from "../api/http";
import { type Edit, editDataset } from "../api/dataset-rows";
import { Button } from "../components/button";
import { Dialog } from "../components/dialog";
import { ErrorNote } from "../components/error-note";
import { Field, Select } from "../components/field";
import { toast } from "../components/toasts";
import { useAction } from "../components/use-action";
import { useLoaded } from "../components/use-loaded";
import { keep, recall } from "../storage";
import { counted } from "./format";
import type { DatasetReport } from "../api/types";

type Source = NonNullable<Edit["add_from"]>;

const LAST = "add-to-dataset";

/** A button that asks for the data set. */
export function AddToDataset({ source, small = false, label = "Add to a data set…", onAdded }: { source: Source; small?: boolean; label?: string; onAdded?: () => void }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button small={small} onClick={() => setOpen(true)}>
        {label}
      </Button>
      {open && <ChoiceDialog source={source} onAdded={onAdded} onClose={() => setOpen(false)} />}
    </>
  );
}

function ChoiceDialog({ source, onAdded, onClose }: { source: Source; onAdded: (() => void) | undefined; onClose: () => void }) {
  const sets = useLoaded((signal) => call<DatasetReport[]>("GET", "/v1/datasets", { signal }), []);
  const [chosen, setChosen] = useState<string | null>(null);
  const [name, setName] = useState("");
  const { busy, error, run } = useAction();
  const names = (sets.value ?? []).map((one) => one.name);
  const last = recall(LAST);
  const target = chosen ?? (last !== null && names.includes(last) ? last : "");
  const rows = "rows" in source ? counted(source.rows.length, "row") : counted(source.traces.length, "trace");
  const add = () =>
    run(async () => {
      const wanted = target || name.trim();
      const made = await editDataset(wanted, { add_from: source, create: target === "" });
      keep(LAST, made.name);
      toast(`${rows} added to ${made.name}, version ${made.version}`, { to: `/datasets/${encodeURIComponent(made.name)}?first=${Math.floor((made.rows - 1) / 50) * 50}`, label: "View" });
      onClose();
      onAdded?.();
    });
  const actions = (
    <>
      <Button onClick={onClose}>Cancel</Button>
      <Button kind="primary" type="submit" busy={busy} disabled={sets.value === null || (target === "" && name.trim() === "")}>
        {`Add ${rows}`}
      </Button>
    </>
  );
  return (
    <Dialog title={`Add ${rows} to a data set`} onClose={onClose} onSubmit={() => void add()} actions={actions}>
      <Select label="Data set" value={target} onValue={setChosen} options={[{ value: "", label: "A new one" }, ...names.map((one) => ({ value: one, label: one }))]} />
      {target === "" && <Field label="Its name" value={name} onValue={setName} autocomplete="off" spellcheck={false} hint="Use letters, digits, dots, dashes and underscores." />}
      {target !== "" && <p class="field-hint small">The result is the next version of {target}; the current version stays.</p>}
      {sets.error !== null && <ErrorNote error={sets.error} onRetry={sets.reload} />}
      {error !== null && <ErrorNote error={error} />}
    </Dialog>
  );
}
