import { saveAs } from "../api/http";
import { plain } from "../shown-text";
import { Button } from "./button";
import { CopyButton } from "./copy-button";

const SHOWN = 12_000;

/** Shows the beginning of a text of any length; the whole text can be copied or saved under `name`. */
export function LongText({ text, name, label }: { text: string; name: string; label: string }) {
  const cut = text.length > SHOWN;
  return (
    <div class="long-text">
      <pre class="output" tabIndex={0} role="group" aria-label={label}>
        {plain(cut ? text.slice(0, SHOWN) : text)}
      </pre>
      {cut && (
        <p class="long-text-rest line">
          <span class="muted">
            The first {(SHOWN / 1000).toFixed(0)} KB of {shownSize(text.length)}.
          </span>
          <CopyButton label="Copy all" text={() => text} />
          <Button kind="quiet" small onClick={() => saveAs(new Blob([text], { type: "text/plain" }), name)}>
            Save all
          </Button>
        </p>
      )}
    </div>
  );
}

function shownSize(characters: number): string {
  return characters < 1_000_000 ? `${Math.round(characters / 1000)} KB` : `${(characters / 1_000_000).toFixed(1)} MB`;
}
