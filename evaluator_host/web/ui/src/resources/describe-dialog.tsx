import { useState } from "preact/hooks";
import { call } from "../api/http";
import { Button } from "../components/button";
import { Dialog } from "../components/dialog";
import { ErrorNote } from "../components/error-note";
import { Field } from "../components/field";
import { useAction } from "../components/use-action";
import type { EvaluatorReport } from "../api/types";

/** The tags in a string, separated by commas. */
export function tagsOf(text: string): string[] {
  return text.split(",").map((tag) => tag.trim()).filter(Boolean);
}

/** Changes description and tags, which all versions of an evaluator share: no version is created. */
export function DescribeDialog({ report, onClose, onSaved }: { report: EvaluatorReport; onClose: () => void; onSaved: () => void }) {
  const [description, setDescription] = useState(report.description);
  const [tags, setTags] = useState(report.tags.join(", "));
  const { busy, error, run } = useAction();
  const save = () =>
    run(async () => {
      await call("PATCH", `/v1/evaluators/${encodeURIComponent(report.name)}`, { body: { description: description.trim(), tags: tagsOf(tags) } });
      onSaved();
      onClose();
    });
  return (
    <Dialog
      title={`Description and tags of ${report.name}`}
      onClose={onClose}
      onSubmit={() => void save()}
      actions={
        <Button kind="primary" type="submit" busy={busy}>
          Save
        </Button>
      }
    >
      <Field label="Description" value={description} onValue={setDescription} placeholder="What it scores" />
      <Field label="Tags" value={tags} onValue={setTags} placeholder="tone, regression" hint="Words to find the evaluator by, separated by commas." autocomplete="off" />
      {error !== null && <ErrorNote error={error} />}
    </Dialog>
  );
}
