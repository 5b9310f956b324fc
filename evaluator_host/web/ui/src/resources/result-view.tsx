import { NoteText, Prose } from "../components/prose";
import type { Result } from "../api/types";
import { rounded, milliseconds } from "./format";
import { Facts, Score, Verdict } from "./parts";
import { usageInWords } from "./usage";
import { Value } from "./value";

/** The complete result of an evaluator for one row. */
export function ResultView({ result }: { result: Result }) {
  const metrics = Object.entries(result.metrics).filter(([name]) => name !== "score");
  const printed = [result.logs.stdout, result.logs.stderr].filter((text) => text.trim() !== "").join("\n");
  return (
    <div class="result-view stack">
      <div class="line">
        <span class="result-score">{rounded(result.score)}</span>
        <Verdict result={result} />
        {result.label !== null && <span class="chip chip-info">{result.label}</span>}
      </div>
      {result.reason !== null && <p class="result-reason">{result.reason}</p>}
      {result.error !== null && (
        <div class="note note-error">
          <p class="strong">
            {result.error.type ?? result.error.code}
            {result.error.line !== null && ` on line ${result.error.line}`}
          </p>
          <p class="pre-wrap">
            <Prose text={result.error.message} />
          </p>
          {result.error.hint && (
            <p class="muted">
              <Prose text={result.error.hint} />
            </p>
          )}
        </div>
      )}
      {result.error?.traceback && <Value label="Traceback" value={result.error.traceback} />}
      {result.warnings.map((warning, index) => (
        <div key={index} class="note note-warn">
          <p class="pre-wrap">
            <NoteText note={warning} />
          </p>
        </div>
      ))}
      <Facts
        facts={[
          ...metrics.map(([name, value]) => [name, <Score key={name} value={Number(value)} />] as const),
          ["Run", milliseconds(result.timing_ms.run)],
          ["Queue", milliseconds(result.timing_ms.queue)],
          ["Load", milliseconds(result.timing_ms.load)],
          ["Total", milliseconds(result.timing_ms.total)],
          result.usage != null && ["Used", usageInWords(result.usage)],
          (result.not_loaded ?? []).length > 0 && ["Not loaded", result.not_loaded.join(", ")],
          (result.evaluator?.grants ?? []).length > 0 && ["Access", result.evaluator.grants.join(", ")],
        ]}
      />
      {result.value !== null && typeof result.value === "object" && (
        <details>
          <summary>Returned value</summary>
          <Value label="Returned value" value={result.value} />
        </details>
      )}
      {printed !== "" && (
        <details open>
          <summary>Printed{result.logs.truncated ? " (cut)" : ""}</summary>
          <Value label="Printed" value={printed} />
        </details>
      )}
    </div>
  );
}
