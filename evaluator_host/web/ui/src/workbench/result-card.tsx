/** The result of a run: the score first, then the details. Output of the code is always shown as text. */
import type { ComponentChildren } from "preact";
import { Button } from "../components/button";
import { LongText } from "../components/long-text";
import { NoteText, Prose } from "../components/prose";
import { shownJson } from "../json";
import { difference } from "../resources/format";
import { plain, shownMs, shownNumber } from "../shown-text";
import type { EvaluationError, Result } from "../api/types";
import { usageInWords } from "../resources/usage";
import type { Run } from "./history";
import { TimingBar } from "./timing-bar";

const MOST_METRICS = 60;
const MOST_WARNINGS = 20;
const REASON = 4000;

type GoTo = (line: number, column: number | null) => void;

interface ResultCardProps {
  result: Result;
  goTo: GoTo;
  /** Whether the code or the row has been changed since this run. */
  stale?: boolean;
  /** The run before this one. */
  before?: Run | null;
  /** Packages that the run lacked. */
  pins?: readonly string[];
  onPin?: (pin: string) => void;
  /** Run the code again with the packages that the host chooses. */
  onAddAndRun?: () => void;
  actions?: ComponentChildren;
}

export function ResultCard({ result, goTo, stale = false, before = null, pins = [], onPin, onAddAndRun, actions }: ResultCardProps) {
  return (
    <article class="result stack" aria-label="Result">
      {stale && <p class="result-old">Result of an earlier version: the code or the row has been changed since.</p>}
      <Headline result={result} />
      {before !== null && <Against before={before} result={result} />}
      {result.error && (
        <Failure error={result.error} goTo={goTo}>
          {pins.length > 0 && onAddAndRun !== undefined && (
            <Button small kind="primary" onClick={onAddAndRun}>
              Add and run
            </Button>
          )}
          {pins.map((pin) => (
            <Button key={pin} small onClick={() => onPin?.(pin)}>
              Add {pin}
            </Button>
          ))}
        </Failure>
      )}
      {result.reason !== null && <p class="result-reason">{plain(result.reason.slice(0, REASON))}{result.reason.length > REASON && "…"}</p>}
      <Metrics result={result} />
      <Warnings notes={result.warnings} />
      {(result.not_loaded ?? []).length > 0 && <p class="muted">Not loaded, and not needed: {result.not_loaded.join(", ")}.</p>}
      <TimingBar timing={result.timing_ms} />
      <Outputs result={result} />
      <p class="small muted">
        {result.environment.runtime} · {result.sandbox.backend}
        {result.sandbox.warm ? " · already loaded" : ""}
        {result.usage != null ? ` · ${usageInWords(result.usage)}` : ""}
        {result.sandbox.peak_memory_kb !== null ? ` · peak memory ${(result.sandbox.peak_memory_kb / 1024).toFixed(1)} MB` : ""}
      </p>
      {actions && <div class="result-actions line">{actions}</div>}
    </article>
  );
}

export function Warnings({ notes }: { notes: Result["warnings"] }) {
  if (notes.length === 0) return null;
  return (
    <ul class="stack-tight" aria-label="Warnings">
      {notes.slice(0, MOST_WARNINGS).map((note, index) => (
        <li key={index}>
          <span class="chip chip-warn">{note.code}</span> <NoteText note={note} />
        </li>
      ))}
    </ul>
  );
}

function Headline({ result }: { result: Result }) {
  const tone = result.status === "failed" ? "fail" : result.passed === null ? "plain" : result.passed ? "pass" : "fail";
  return (
    <header class={`result-head line result-${tone}`}>
      {result.score !== null && <span class="result-word muted">Score</span>}
      <span class="result-score" data-testid="score">
        {result.status === "failed" ? "Failed" : result.status === "skipped" ? "Skipped" : result.score === null ? "No score" : shownNumber(result.score)}
      </span>
      {result.passed !== null && <span class={result.passed ? "chip chip-pass" : "chip chip-warn"}>{result.passed ? "✓ passed" : "✗ not passed"}</span>}
      {result.label !== null && <span class="chip">{plain(result.label.slice(0, 120))}</span>}
      {result.error && <code class="chip chip-fail">{result.error.code}</code>}
      <span class="push muted">{shownMs(result.timing_ms.total)}</span>
    </header>
  );
}

/** The change since the previous run. */
function Against({ before, result }: { before: Run; result: Result }) {
  const [earlier, later] = [before.result.score, result.score];
  if (earlier === null && later === null) return null;
  const shown = (value: number | null, failed: boolean) => (value === null ? (failed ? "failed" : "no score") : shownNumber(value));
  const change = earlier !== null && later !== null ? difference(earlier, later) : null;
  return (
    <p class="result-against muted">
      {change === 0 ? `The score is the same as in run ${before.number}.` : `Run ${before.number}: ${shown(earlier, before.result.status === "failed")} → ${shown(later, result.status === "failed")}`}
      {change !== null && change !== 0 && ` (${change > 0 ? "+" : "−"}${shownNumber(Math.abs(change))})`}
    </p>
  );
}

function Failure({ error, goTo, children }: { error: EvaluationError; goTo: GoTo; children: ComponentChildren }) {
  return (
    <div class="note note-error result-error">
      <p class="strong">
        {error.type !== null && !error.message.startsWith(error.type) && `${plain(error.type.slice(0, 100))}: `}
        <Prose text={error.message} />
      </p>
      {error.hint !== null && (
        <p>
          <Prose text={error.hint} />
        </p>
      )}
      {children}
      {error.line !== null && (
        <button type="button" class="link-button" onClick={() => goTo(error.line ?? 1, error.column)}>
          Go to line {error.line}
        </button>
      )}
      {error.traceback !== null && <Traceback text={error.traceback} goTo={goTo} />}
    </div>
  );
}

const PLACE = /\bline (\d+)|:(\d+):(\d+)/;
const MOST_LINES = 120;

/** A traceback in which each place is a link to the code. */
function Traceback({ text, goTo }: { text: string; goTo: GoTo }) {
  const lines = text.trimEnd().split("\n");
  return (
    <pre class="output traceback" tabIndex={0} role="region" aria-label="Traceback">
      {lines.slice(0, MOST_LINES).map((line, index) => {
        const found = PLACE.exec(line);
        const shown = plain(line.slice(0, 500));
        const words = shown.trimStart();
        const number = Number(found?.[1] ?? found?.[2]);
        return found === null || !Number.isSafeInteger(number) ? (
          <span key={index}>{shown}{"\n"}</span>
        ) : (
          <span key={index}>
            {shown.slice(0, shown.length - words.length)}
            <button type="button" class="link-button" onClick={() => goTo(number, found[3] === undefined ? null : Number(found[3]))}>
              {words}
            </button>
            {"\n"}
          </span>
        );
      })}
      {lines.length > MOST_LINES && `… ${lines.length - MOST_LINES} more lines`}
    </pre>
  );
}

function Metrics({ result }: { result: Result }) {
  const metrics = Object.entries(result.metrics).filter(([name]) => name !== "score");
  if (metrics.length === 0) return null;
  return (
    <dl class="metrics line" aria-label="Metrics">
      {metrics.slice(0, MOST_METRICS).map(([name, value]) => (
        <div key={name}>
          <dt title={name}>{plain(name.slice(0, 80))}</dt>
          <dd>{shownNumber(value)}</dd>
        </div>
      ))}
      {metrics.length > MOST_METRICS && (
        <div>
          <dt class="muted">and {metrics.length - MOST_METRICS} more</dt>
          <dd />
        </div>
      )}
    </dl>
  );
}

/** The returned value and the printed output, folded unless they are short. */
function Outputs({ result }: { result: Result }) {
  const { stdout, stderr, truncated } = result.logs;
  const isPlain = result.value === null || typeof result.value !== "object";
  return (
    <>
      {stdout !== "" && (
        <details class="fold" open>
          <summary>Printed{truncated ? " (truncated at the limit)" : ""}</summary>
          <LongText text={stdout} name="stdout.txt" label="Printed" />
        </details>
      )}
      {stderr !== "" && (
        <details class="fold" open>
          <summary>Printed to stderr{truncated ? " (truncated at the limit)" : ""}</summary>
          <LongText text={stderr} name="stderr.txt" label="Printed to stderr" />
        </details>
      )}
      {result.status === "scored" && !(isPlain && typeof result.value !== "string") && (
        <details class="fold">
          <summary>Returned value</summary>
          <LongText text={shownJson(result.value, Infinity).text} name="value.json" label="Returned value" />
        </details>
      )}
      {result.native.length > 0 && (
        <details class="fold">
          <summary>What {result.evaluator.contract} stores</summary>
          <LongText text={shownJson(result.native, Infinity).text} name="native.json" label="Native scores" />
        </details>
      )}
    </>
  );
}
