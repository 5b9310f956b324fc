import { useEffect, useRef, useState } from "preact/hooks";
import type { Syntax } from "./code-editor";
import { Spinner } from "./spinner";

interface DiffProps {
  before: string;
  after: string;
  syntax: Syntax;
  /** The titles of the two texts, shown as headings and read by screen readers. */
  labels: readonly [string, string];
}

const NARROW = matchMedia("(max-width: 760px)");

/** Shows two texts side by side, or one below the other if there is not enough room. */
export function Diff({ before, after, syntax, labels }: DiffProps) {
  const place = useRef<HTMLDivElement>(null);
  const [ready, setReady] = useState(false);
  const [unified, setUnified] = useState(NARROW.matches);
  useEffect(() => {
    const change = () => setUnified(NARROW.matches);
    NARROW.addEventListener("change", change);
    return () => NARROW.removeEventListener("change", change);
  }, []);
  useEffect(() => {
    let gone = false;
    let close: (() => void) | null = null;
    void import("../editor/diff").then(({ openDiff }) => {
      if (gone || place.current === null) return;
      close = openDiff({ parent: place.current, before, after, syntax, labels, unified });
      setReady(true);
    });
    return () => {
      gone = true;
      close?.();
    };
  }, [before, after, syntax, labels[0], labels[1], unified]);
  return (
    <div class="diff">
      <div class={unified ? "diff-labels diff-labels-one" : "diff-labels"}>
        {unified ? (
          <span>
            {labels[0]} → {labels[1]}
          </span>
        ) : (
          labels.map((label) => <span key={label}>{label}</span>)
        )}
      </div>
      {!ready && <Spinner label="Comparing" />}
      <div ref={place} />
    </div>
  );
}
