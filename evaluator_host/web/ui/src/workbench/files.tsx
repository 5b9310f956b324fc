/** The tabs over the editor of an evaluator with files: its code, each file, data files, and a field to add a file. */
import { useState } from "preact/hooks";
import { upload } from "../api/http";
import { Button } from "../components/button";
import { ErrorNote } from "../components/error-note";
import type { CheckReport, DataFile } from "../api/types";
import { pickFiles } from "../resources/drop-zone";
import { languageOf, ownPath, withEvaluator, type Draft } from "./draft";

interface FilesProps {
  draft: Draft;
  change: (changes: Partial<Draft>) => void;
  /** The path of the file that is shown; null for the code. */
  shown: string | null;
  onShow: (path: string | null) => void;
  missing: CheckReport["missing_imports"];
  onPick: (files: readonly File[]) => void;
}

export function Files({ draft, change, shown, onShow, missing, onPick }: FilesProps) {
  const [adding, setAdding] = useState<string | null>(null);
  const [sending, setSending] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const paths = Object.keys(draft.files);
  const wanted = missing.filter(({ path }) => path !== null && !(path in draft.files)).map(({ path }) => path as string);
  const add = (path: string) => {
    if (!(path in draft.files)) change({ files: { ...draft.files, [path]: "" }, example: null });
    setAdding(null);
    onShow(path);
  };
  const sendData = async (path: string) => {
    const picked = await pickFiles({ accept: "", several: true });
    if (picked.length === 0) return;
    setSending(true);
    setError(null);
    try {
      const data = { ...draft.data };
      for (const file of picked) {
        const sent = await upload<DataFile>("/v1/data", file, { contentType: "application/octet-stream", onSent: () => undefined });
        data[picked.length === 1 && path !== "" ? path : file.name] = sent.digest;
      }
      change({ data, example: null });
      setAdding(null);
    } catch (problem) {
      setError(problem);
    }
    setSending(false);
  };
  const removeData = (path: string) => {
    const { [path]: _, ...data } = draft.data;
    change({ data, example: null });
  };
  const remove = (path: string) => {
    const { [path]: _, ...files } = draft.files;
    change({ files, example: null });
    onShow(null);
  };
  const pick = async (how: Parameters<typeof pickFiles>[0]) => {
    setAdding(null);
    const files = await pickFiles(how);
    if (files.length > 0) onPick(files);
  };
  return (
    <div class="file-tabs line">
      {paths.length > 0 && (
        <div class="segments" role="group" aria-label="Files">
          <button type="button" aria-pressed={shown === null} onClick={() => onShow(null)}>
            {ownPath(draft)}
          </button>
          {paths.map((path) => (
            <button key={path} type="button" aria-pressed={shown === path} onClick={() => onShow(path)}>
              {path}
            </button>
          ))}
        </div>
      )}
      {shown !== null && (
        <Button kind="quiet" small onClick={() => remove(shown)}>
          Remove {shown}
        </Button>
      )}
      {shown !== null && languageOf(shown) !== null && (
        <Button
          kind="quiet"
          small
          onClick={() => {
            change(withEvaluator(draft, shown));
            onShow(null);
          }}
        >
          Make it the evaluator
        </Button>
      )}
      {Object.keys(draft.data).map((path) => (
        <Button key={path} kind="quiet" small title="A data file, which the code reads" onClick={() => removeData(path)}>
          Remove {path}
        </Button>
      ))}
      {adding === null ? (
        <Button kind="quiet" small onClick={() => setAdding("")}>
          Add a file…
        </Button>
      ) : (
        <form
          class="file-form"
          onSubmit={(event) => {
            event.preventDefault();
            if (adding.trim() !== "") add(adding.trim());
          }}
        >
          <input
            class="input"
            aria-label="Path of the file"
            placeholder={`helpers/text.${ownPath(draft).split(".").at(-1)}`}
            value={adding}
            ref={(field) => field?.focus()}
            onInput={(event) => setAdding(event.currentTarget.value)}
            onKeyDown={(event) => event.key === "Escape" && setAdding(null)}
          />
          <Button small type="submit">
            Add
          </Button>
          <Button small onClick={() => void pick({ accept: "", several: true })}>
            Files or a zip…
          </Button>
          <Button small onClick={() => void pick({ folder: true })}>
            A folder…
          </Button>
          <Button small disabled={sending} onClick={() => void sendData(adding.trim())}>
            {sending ? "Sending…" : "Send data…"}
          </Button>
          {error !== null && <ErrorNote title="The file was not stored" error={error} />}
        </form>
      )}
      {wanted.slice(0, 3).map((path) => (
        <Button key={path} small onClick={() => add(path)}>
          Add {path}
        </Button>
      ))}
      {wanted.length > 0 && (
        <Button small onClick={() => void pick({ folder: true })}>
          Add your project's folder…
        </Button>
      )}
    </div>
  );
}
