import { useState } from "preact/hooks";
import { CopyButton } from "../components/copy-button";
import { shownJson } from "../json";
import { count } from "./format";

/** Shows a JSON value: text as it is, anything else as JSON. A long value is truncated until the user expands it. */
export function Value({ label, value, empty = "nothing" }: { label: string; value: unknown; empty?: string }) {
  const [whole, setWhole] = useState(false);
  if (value === null || value === undefined) return <p class="muted value-none">{empty}</p>;
  const most = whole ? Number.MAX_SAFE_INTEGER : 20_000;
  const { text, left } = typeof value === "string" ? cut(value, most) : shownJson(value, most);
  return (
    <div class="value">
      <pre class="value-text" tabIndex={0} role="group" aria-label={label}>
        {text === "" ? <span class="muted">empty text</span> : text}
        {left > 0 && "…"}
      </pre>
      <div class="value-actions">
        {left > 0 && (
          <button type="button" class="button button-quiet button-small" onClick={() => setWhole(true)}>
            Show {count(left)} more characters
          </button>
        )}
        <CopyButton label="Copy" text={() => (typeof value === "string" ? value : JSON.stringify(value, null, 2))} said={`${label} copied`} />
      </div>
    </div>
  );
}

/** Shows the inputs of a row by column, or as one value if they are not an object. */
export function ByColumn({ label, value }: { label: string; value: unknown }) {
  if (value === null || typeof value !== "object" || Array.isArray(value) || Object.keys(value).length === 0) return <Value label={label} value={value} />;
  return (
    <dl class="columns" aria-label={label}>
      {Object.entries(value).map(([name, one]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <Value label={name} value={one} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

function cut(text: string, most: number): { text: string; left: number } {
  return text.length <= most ? { text, left: 0 } : { text: text.slice(0, most), left: text.length - most };
}
