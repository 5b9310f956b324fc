/** The rows below the editor: each with its score and the expected result; scored again on every change. */
import { Fragment } from "preact";
import { useState } from "preact/hooks";
import { Button } from "../components/button";
import { ErrorNote } from "../components/error-note";
import { Prose } from "../components/prose";
import { Table } from "../components/table";
import { own } from "../json";
import { count, rounded, milliseconds, oneLine, passRate, ROW_HEADING, signed } from "../resources/format";
import { Score, Verdict } from "../resources/parts";
import { ResultView } from "../resources/result-view";
import type { Result, Row } from "../api/types";
import { expectationOf, readExpectation, unmet } from "./expectation";
import { meanChange, MOST_ROWS, shownColumns, summaryOf, type TestRow } from "./test-rows";
import type { RowScores } from "./use-row-scores";

const COLUMNS = 3; // columns that are shown if the code reads fewer

interface RowGridProps {
  rows: readonly TestRow[];
  /** The columns that the code reads. */
  reads: readonly string[];
  onRows: (rows: TestRow[]) => void;
  scores: RowScores;
  live: boolean;
  onLive: (live: boolean) => void;
  onAdd: () => void;
  onAddTestRow: () => void;
  /** Put a row into the test panel. */
  onUse: (row: TestRow) => void;
}

export function RowGrid({ rows, reads, onRows, scores, live, onLive, onAdd, onAddTestRow, onUse }: RowGridProps) {
  const [open, setOpen] = useState<string | null>(null);
  const change = (id: string, changes: Partial<TestRow>) => onRows(rows.map((one) => (one.id === id ? { ...one, ...changes } : one)));
  const expectAll = () => onRows(rows.map((one) => ({ ...one, expected: scores.results.has(one.id) ? expectationOf(scores.results.get(one.id)!) : one.expected })));
  return (
    <section class="panel row-grid" aria-labelledby="rows-title">
      <header class="panel-head">
        <h2 id="rows-title">Rows</h2>
        <div class="page-actions line">
          {rows.length > 0 && (
            <>
              <label class="check row-live">
                <input type="checkbox" checked={live} onChange={(event) => onLive(event.currentTarget.checked)} />
                <span>Score on every change</span>
              </label>
              <Button small busy={scores.running} onClick={scores.again}>
                Score
              </Button>
              <Button kind="quiet" small disabled={scores.results.size === 0 || scores.stale} onClick={expectAll}>
                Expect these scores
              </Button>
              <Button kind="quiet" small onClick={() => onRows([])}>
                Remove all
              </Button>
            </>
          )}
          <Button small disabled={rows.length >= MOST_ROWS} onClick={onAddTestRow}>
            Add the test row
          </Button>
          <Button small disabled={rows.length >= MOST_ROWS} onClick={onAdd}>
            Add stored rows…
          </Button>
        </div>
      </header>
      {rows.length === 0 ? (
        <p class="row-none muted">Add rows from a data set, from the failures of a job or from live traces. They are scored again while you write. Enter the score that you expect for each row; Save keeps the rows with an expected score in the version.</p>
      ) : (
        <>
          <Sums rows={rows} scores={scores} />
          {scores.error !== null && (
            <div class="row-none">
              <ErrorNote title="The rows could not be scored; the results below are older" error={scores.error} />
            </div>
          )}
          <Rows rows={rows} reads={reads} scores={scores} open={open} onOpen={(id) => setOpen(open === id ? null : id)} onChange={change} onRemove={(id) => onRows(rows.filter((one) => one.id !== id))} onUse={onUse} />
        </>
      )}
    </section>
  );
}

function Sums({ rows, scores }: { rows: readonly TestRow[]; scores: RowScores }) {
  const now = summaryOf(rows, scores.results);
  const moved = meanChange(rows, scores.before, scores.results);
  if (scores.results.size === 0) return <p class="row-sums line muted" role="status">{scores.running ? "Scoring…" : "Not scored yet"}</p>;
  return (
    <p class={scores.stale ? "row-sums line row-stale" : "row-sums line"} role="status" data-stale={scores.stale}>
      <span>
        Mean <strong class={now.failed > 0 || scores.doubt !== null ? "warn" : ""}>{rounded(now.mean)}</strong> over {count(now.scored)} of {count(rows.length)} rows
        {moved !== 0 && !scores.stale && <span class="muted"> ({signed(moved)})</span>}
      </span>
      {scores.doubt !== null && now.scored > 0 && <span class="warn"><Prose text={oneLine(scores.doubt, 120)} /></span>}
      {now.judged > 0 && <span>{passRate({ pass_rate: now.passed / now.judged, judged: now.judged }, now.scored)} passed</span>}
      {now.failed > 0 && <span class="fail">{count(now.failed)} failed</span>}
      {now.expected > 0 && (
        <span class={now.met === now.expected ? "pass" : "fail"}>
          {now.met === now.expected ? "✓" : "✗"} {count(now.met)} of {count(now.expected)} as expected
        </span>
      )}
      <span class="muted">{scores.stale ? (scores.running ? "Changed; scoring…" : "Scores of an earlier version") : scores.tookMs === null ? "" : milliseconds(scores.tookMs)}</span>
    </p>
  );
}

interface RowsProps {
  rows: readonly TestRow[];
  reads: readonly string[];
  scores: RowScores;
  open: string | null;
  onOpen: (id: string) => void;
  onChange: (id: string, changes: Partial<TestRow>) => void;
  onRemove: (id: string) => void;
  onUse: (row: TestRow) => void;
}

function Rows({ rows, reads, scores, open, onOpen, onChange, onRemove, onUse }: RowsProps) {
  const names = shownColumns(rows.map(({ row }) => row.variables ?? row.inputs ?? {}), reads, COLUMNS);
  const head = (
    <>
      <th scope="col" class="number">{ROW_HEADING}</th>
      {names.map((name) => (
        <th key={name} scope="col">
          {oneLine(name, 40)}
        </th>
      ))}
      <th scope="col">Outputs</th>
      <th scope="col" class="number">Score</th>
      <th scope="col">Outcome</th>
      <th scope="col">Expected score</th>
      <th scope="col" aria-label="Actions" />
    </>
  );
  return (
    <Table label="Rows to score" head={head} class={scores.stale ? "row-table row-stale" : "row-table"}>
      {rows.map((one, index) => {
        const result = scores.results.get(one.id);
        return (
          <Fragment key={one.id}>
            <tr class={open === one.id ? "row-open" : ""}>
              <th scope="row" class="number">
                <button type="button" class="link-button" aria-expanded={open === one.id} title={one.from || "typed here"} aria-label={`Details of row ${index}`} onClick={() => onOpen(one.id)}>
                  {index}
                </button>
              </th>
              {names.map((name) => (
                <td key={name} class="cell-value">
                  <span class="clamped">{oneLine(own(one.row.variables ?? one.row.inputs ?? {}, name), 100)}</span>
                </td>
              ))}
              <td class="cell-value">
                <span class="clamped">{oneLine(one.row.outputs ?? (one.row.trace ? "(a trace)" : ""), 120)}</span>
              </td>
              <td class="number">{result && <Scored result={result} before={scores.before.get(one.id)} />}</td>
              <td>{result && <Verdict result={result} />}</td>
              <td>
                <Expected index={index} typed={one.expected} result={result} onTyped={(expected) => onChange(one.id, { expected })} />
              </td>
              <td class="nowrap">
                <Button kind="quiet" small aria-label={`Use row ${index} as the test row`} onClick={() => onUse(one)}>
                  Use
                </Button>
                <button type="button" class="pin-remove" aria-label={`Remove row ${index}`} onClick={() => onRemove(one.id)}>
                  ×
                </button>
              </td>
            </tr>
            {open === one.id && (
              <tr class="row-details">
                <td colSpan={names.length + 6}>
                  <Details row={one} result={result} />
                </td>
              </tr>
            )}
          </Fragment>
        );
      })}
    </Table>
  );
}

/** The score and, if the last change altered it, the previous score. */
function Scored({ result, before }: { result: Result; before: Result | undefined }) {
  const moved = before !== undefined && before.score !== result.score;
  return (
    <span class="row-scored">
      {moved && <span class="muted">{rounded(before.score)} →</span>} <Score value={result.score} />
    </span>
  );
}

function Expected({ index, typed, result, onTyped }: { index: number; typed: string; result: Result | undefined; onTyped: (typed: string) => void }) {
  const expectation = readExpectation(typed);
  const wrong = expectation?.kind === "wrong" ? expectation.message : null;
  const why = result === undefined || wrong !== null ? null : unmet(expectation, result);
  const mark = wrong !== null ? "?" : expectation === null || result === undefined ? "" : why === null ? "✓" : "✗";
  return (
    <span class="row-expected">
      <input class="input" aria-label={`Expected score of row ${index}`} placeholder="any" title={wrong ?? "1, 1 ± 0.05, 0.4..0.6, >= 0.5, passed, not passed, fails"} aria-invalid={wrong !== null || undefined} spellcheck={false} autocomplete="off" value={typed} onInput={(event) => onTyped(event.currentTarget.value)} />
      <span class={mark === "✓" ? "pass" : "fail"} title={why ?? wrong ?? undefined}>
        {mark}
        <span class="visually-hidden">{mark === "✓" ? "as expected" : (why ?? wrong ?? "")}</span>
      </span>
    </span>
  );
}

function Details({ row, result }: { row: TestRow; result: Result | undefined }) {
  return (
    <div class="row-detail">
      <div>
        {row.from !== "" && <p class="muted">From {row.from}</p>}
        <pre class="output" tabIndex={0} role="group" aria-label="The row">
          {shown(row.row)}
        </pre>
      </div>
      {result && <ResultView result={result} />}
    </div>
  );
}

function shown(row: Row): string {
  const text = JSON.stringify(row, null, 2);
  return text.length > 8000 ? `${text.slice(0, 8000)}…` : text;
}
