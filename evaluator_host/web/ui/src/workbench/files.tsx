/** The tabs over the editor of an evaluator of several files: its code, each file, and a field for the path of one more. */
import { useState } from "preact/hooks";
import { Button } from "../components/button";
import type { CheckReport } from "../api/types";
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
  const paths = Object.keys(draft.files);
  const wanted = missing.filter(({ path }) => path !== null && !(path in draft.files)).map(({ path }) => path as string);
  const add = (path: string) => {
    if (!(path in draft.files)) change({ files: { ...draft.files, [path]: "" }, example: null });
    setAdding(null);
    onShow(path);
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
    <div class="file-tabs">
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
            placeholder="helpers/text.py"
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
        </form>
      )}
      {wanted.slice(0, 3).map((path) => (
        <Button key={path} small onClick={() => add(path)}>
          Add {path}
        </Button>
      ))}
    </div>
  );
}
