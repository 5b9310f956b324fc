/** The dialogs that save an evaluator under a name and open a stored one. */
import { useState } from "preact/hooks";
import { ApiError, call } from "../api/http";
import { Button } from "../components/button";
import { Dialog } from "../components/dialog";
import { Empty } from "../components/empty";
import { ErrorNote } from "../components/error-note";
import { Field } from "../components/field";
import { Spinner } from "../components/spinner";
import { Table } from "../components/table";
import { toast } from "../components/toasts";
import { useAction } from "../components/use-action";
import { useLoaded } from "../components/use-loaded";
import type { EvaluatorIn, EvaluatorReport } from "../api/types";
import { counted } from "../resources/format";
import { tagsOf } from "../resources/describe-dialog";
import { Segments, When } from "../resources/parts";
import { type Draft, earlierDrafts } from "./draft";
import { casesOf, type TestRow } from "./test-rows";

const SOURCES = [
  { value: "stored", label: "Stored evaluators" },
  { value: "drafts", label: "Earlier drafts" },
] as const;

interface OpenDialogProps {
  onClose: () => void;
  onOpen: (report: EvaluatorReport) => void;
  onDraft: (draft: Draft) => void;
}

/** Opens a stored evaluator, or a draft that this browser has kept. */
export function OpenDialog({ onClose, onOpen, onDraft }: OpenDialogProps) {
  const [source, setSource] = useState<"stored" | "drafts">("stored");
  return (
    <Dialog title="Open an evaluator" onClose={onClose} wide>
      <Segments label="From where" value={source} options={SOURCES} onValue={setSource} />
      {source === "stored" ? <Stored onOpen={onOpen} /> : <EarlierDrafts onDraft={onDraft} />}
    </Dialog>
  );
}

function EarlierDrafts({ onDraft }: { onDraft: (draft: Draft) => void }) {
  const [drafts] = useState(earlierDrafts);
  if (drafts.length === 0) return <Empty title="No earlier drafts">This browser keeps a draft of what you write in each tab. You can restore these drafts here.</Empty>;
  return (
    <ul class="stack">
      {drafts.map(({ id, at, draft }) => (
        <li key={id}>
          <div class="draft-head">
            <span>
              <strong>{draft.stored === null ? "Not saved" : `${draft.stored.name}@${draft.stored.version}`}</strong>{" "}
              <span class="muted">
                {draft.language}, {counted(draft.code.split("\n").length, "line")}, <When at={at} />
              </span>
            </span>
            <Button small onClick={() => onDraft(draft)} aria-label={`Restore the draft that begins with ${draft.code.trim().slice(0, 40)}`}>
              Restore
            </Button>
          </div>
          <pre class="draft-code">{draft.code.trim().split("\n").slice(0, 4).join("\n")}</pre>
        </li>
      ))}
    </ul>
  );
}

function Stored({ onOpen }: { onOpen: (report: EvaluatorReport) => void }) {
  const [wanted, setWanted] = useState("");
  const all = useLoaded((signal) => call<EvaluatorReport[]>("GET", "/v1/evaluators", { signal }), []);
  const shown = (all.value ?? []).filter((one) => `${one.name} ${one.description} ${one.tags.join(" ")}`.toLowerCase().includes(wanted.toLowerCase()));
  return (
    <>
      {all.error !== null && <ErrorNote error={all.error} onRetry={all.reload} />}
      {all.value === null && all.error === null && <Spinner label="Loading evaluators" />}
      {all.value?.length === 0 && <Empty title="No stored evaluators yet">Save an evaluator, and it appears in this list.</Empty>}
      {all.value !== null && all.value.length > 0 && (
        <>
          <Field label="Find" type="search" value={wanted} onValue={setWanted} placeholder="Name or description" autocomplete="off" />
          <Table
            label="Stored evaluators"
            head={
              <>
                <th scope="col">Name</th>
                <th scope="col">Version</th>
                <th scope="col">Language</th>
                <th scope="col">Contract</th>
                <th scope="col">Description</th>
              </>
            }
          >
            {shown.slice(0, 200).map((one) => (
              <tr key={one.name}>
                <td>
                  <button type="button" class="link-button" onClick={() => onOpen(one)}>
                    {one.name}
                  </button>
                </td>
                <td class="mono">{one.version}</td>
                <td>{one.evaluator.language}</td>
                <td>{one.contract}</td>
                <td>{one.description.slice(0, 160)}</td>
              </tr>
            ))}
          </Table>
        </>
      )}
    </>
  );
}

interface SaveDialogProps {
  evaluator: EvaluatorIn;
  /** The name of the evaluator so far. */
  name: string;
  /** The stored evaluator that was loaded before other code replaced its code; null if there is none. */
  replaced?: { name: string; version: number } | null;
  /** The rows below the editor; those with an expected result become cases. */
  rows?: readonly TestRow[];
  onClose: () => void;
  onSaved: (report: EvaluatorReport, isNew: boolean) => void;
}

export function SaveDialog({ evaluator, name: given, replaced = null, rows, onClose, onSaved }: SaveDialogProps) {
  const [name, setName] = useState(given);
  const [description, setDescription] = useState("");
  const [message, setMessage] = useState("");
  const [tags, setTags] = useState("");
  const { busy, error, run } = useAction();
  const all = useLoaded((signal) => call<EvaluatorReport[]>("GET", "/v1/evaluators", { signal }), []);
  const before = all.value?.find((one) => one.name === name.trim());
  const save = (force: boolean) =>
    run(async () => {
      const cases = casesOf(rows ?? []);
      const kept = cases.length > 0 || (rows !== undefined && given !== "" && name.trim() === given) ? { ...evaluator, cases } : evaluator;
      const report = await keepAs(name.trim(), kept as EvaluatorIn, { description: description.trim(), message: message.trim(), tags: tagsOf(tags), force, exists: before !== undefined });
      for (const one of report.failing_cases ?? []) toast(`${one.case}: ${one.problem}`);
      onSaved(report, before === undefined || report.version !== before.version);
    });
  const doesNotLoad = error instanceof ApiError && error.status === 422 && error.problems.some(({ field }) => field.startsWith("evaluator"));
  return (
    <Dialog
      title="Save the evaluator"
      onClose={onClose}
      onSubmit={() => name.trim() !== "" && void save(false)}
      actions={
        <>
          {doesNotLoad && (
            <Button busy={busy} onClick={() => void save(true)}>
              Save anyway
            </Button>
          )}
          <Button kind="primary" type="submit" busy={busy} disabled={name.trim() === "" || all.value === null}>
            {before === undefined ? "Save" : `Save as version ${before.latest + 1}`}
          </Button>
        </>
      }
    >
      {replaced !== null && (
        <p class="note note-warn">
          This is not the code of {replaced.name}@{replaced.version}. Give it a new name, or enter {replaced.name} to save it as a new version.
        </p>
      )}
      <Field label="Name" value={name} onValue={setName} hint="Use letters, digits, dots, dashes and underscores." autocomplete="off" spellcheck={false} />
      {before !== undefined && <Field label="What changed" value={message} onValue={setMessage} placeholder="Reason for this version" maxlength={1000} autocomplete="off" />}
      <Field label="Description" value={description} onValue={setDescription} placeholder={before?.description || "What it scores"} />
      <Field label="Tags" value={tags} onValue={setTags} placeholder={before?.tags.join(", ") || "tone, regression"} hint="Words to find the evaluator by, separated by commas." autocomplete="off" />
      {error !== null && <ErrorNote title="The evaluator was not saved" error={error} />}
    </Dialog>
  );
}

/** Create version 1 or the next version. If the name was taken in the meantime, the host refuses. */
async function keepAs(name: string, evaluator: EvaluatorIn, how: { description: string; message?: string; tags?: readonly string[]; force: boolean; exists: boolean }): Promise<EvaluatorReport> {
  const given = { description: how.description, message: how.message ?? "", tags: how.tags ?? [] };
  const body = { ...evaluator, ...Object.fromEntries(Object.entries(given).filter(([, value]) => value.length > 0)) };
  const query = { force: how.force || null };
  if (how.exists) return call("PUT", `/v1/evaluators/${encodeURIComponent(name)}`, { body, query });
  return call("POST", "/v1/evaluators", { body: { name, ...body }, query });
}
