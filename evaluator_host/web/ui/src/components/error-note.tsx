import { useLayoutEffect, useRef } from "preact/hooks";
import { ApiError } from "../api/http";
import { inPageWords } from "../page-words";
import { Prose } from "./prose";

/** Shows an error message of the host, with every wrong field of a refused request, by the labels in `fields`; in a dialog that scrolls, it comes into view. */
export function ErrorNote({ title, error, fields = {}, onRetry }: { title?: string; error: unknown; fields?: Readonly<Record<string, string>>; onRetry?: (() => void) | undefined }) {
  const message = error instanceof Error ? error.message : String(error);
  // a problem is left out if the message already has its hint
  const problems = error instanceof ApiError ? error.problems.filter((one) => !message.includes(one.hint ?? one.message)) : [];
  const place = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (place.current?.closest("dialog")) place.current.scrollIntoView({ block: "nearest" });
  }, [error]);
  return (
    <div class="note note-error" role="alert" ref={place}>
      {title && <p class="strong">{title}</p>}
      <p class="pre-wrap">
        <Prose text={message} />
      </p>
      {problems.length > 0 && (
        <ul class="note-list">
          {problems.slice(0, 20).map((problem, index) => (
            <li key={index}>
              {problem.field && (fields[problem.field] === undefined ? <code>{inPageWords(problem.field)}</code> : <strong>{fields[problem.field]}</strong>)} <Prose text={problem.message} />
              {problem.hint && (
                <span class="muted">
                  {" "}
                  – <Prose text={problem.hint.includes(" ") ? problem.hint : `did you mean ${problem.hint}?`} />
                </span>
              )}
            </li>
          ))}
        </ul>
      )}
      {onRetry && !(error instanceof ApiError && error.status === 404) && (
        <button type="button" class="button button-plain button-small" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}
