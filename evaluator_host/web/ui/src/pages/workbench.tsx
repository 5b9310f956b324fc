/** Write an evaluator on the left, try it on a row on the right. */
import type { Example } from "examples:all";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { hasKey } from "../api/http";
import type { CodeEditorHandle } from "../components/code-editor";
import { CopyButton } from "../components/copy-button";
import { Empty } from "../components/empty";
import { ErrorNote } from "../components/error-note";
import { Spinner } from "../components/spinner";
import { useRunKey } from "../components/use-run-key";
import { navigate } from "../router";
import type { PageProps } from "../routes";
import type { CheckReport, Language, Result } from "../api/types";
import { classOf, criteriaOf } from "../workbench/classes";
import { asCurl, asPython } from "../workbench/copies";
import { beginDraft, contentOf, type Draft, EMPTY, fromExample, keepDraft, recalled, rowTexts, toEvaluator, toRow } from "../workbench/draft";
import { EditorPanel } from "../workbench/editor-panel";
import { draftFrom, type Found, namesAnything } from "../workbench/from-query";
import { FirstSteps } from "../workbench/first-steps";
import { History } from "../workbench/history";
import { ResultCard } from "../workbench/result-card";
import { RowGrid } from "../workbench/row-grid";
import { RunOnDataset } from "../workbench/run-on-dataset";
import { StoredRows } from "../workbench/stored-rows";
import { TestPanel } from "../workbench/test-panel";
import { MOST_ROWS, newRow, type TestRow } from "../workbench/test-rows";
import { useBuild } from "../workbench/use-build";
import { useCheck } from "../workbench/use-check";
import { useRowScores } from "../workbench/use-row-scores";
import { useRuns } from "../workbench/use-runs";

const KEEP_AFTER_MS = 400;
const NO_NAMES: readonly string[] = [];

export default function WorkbenchPage({ query }: PageProps) {
  const [draft, setDraft] = useState<Draft>(() => recalled() ?? EMPTY);
  const [examples, setExamples] = useState<readonly Example[]>([]);
  const [wanted, setWanted] = useState<unknown>(null);
  const [tried, setTried] = useState(false);
  const [turn, setTurn] = useState(0);
  const editor = useRef<CodeEditorHandle>(null);
  const stored = draft.stored;
  useEffect(() => {
    document.title = stored === null ? "Evaluator Host" : `${stored.name}@${stored.version} · Evaluator Host`;
  }, [stored?.name, stored?.version]);
  const [live, setLive] = useState(true);
  const [dialog, setDialog] = useState<"rows" | "dataset" | null>(null);
  const [aside, setAside] = useState<Draft | null>(null);
  const replace = (another: Draft) => {
    setDraft((before) => {
      const isOwn = before.example === null && before.code.trim() !== "" && before.code !== another.code;
      setAside(isOwn && another !== aside ? before : null);
      if (isOwn) keepDraft(before);
      beginDraft();
      return another;
    });
    setTurn((before) => before + 1);
  };
  const change = (changes: Partial<Draft>) => setDraft((before) => ({ ...before, ...changes }));

  useEffect(() => {
    void import("examples:all").then(({ default: all }) => {
      setExamples(all);
      const first = all[0];
      if (first !== undefined && recalled() === null && !namesAnything(query)) setDraft((before) => (before === EMPTY ? fromExample(first, "python") : before));
    });
  }, []);
  const runs = useRuns();
  const address = query.toString();
  useEffect(() => {
    if (!namesAnything(query)) return;
    const show = (found: Found) => {
      replace(found.draft);
      if (found.result !== null) runs.bring(found.draft, found.result);
    };
    draftFrom(query, draft).then(show, setWanted).finally(() => navigate("/", { replace: true }));
  }, [address]);
  useEffect(() => {
    if (draft === EMPTY) return;
    const timer = setTimeout(() => keepDraft(draft), KEEP_AFTER_MS);
    return () => clearTimeout(timer);
  }, [draft]);

  const { evaluator, faults } = useMemo(() => toEvaluator(draft), [draft]);
  const row = useMemo(() => toRow(draft.row), [draft.row]);
  const build = useBuild(draft);
  const checked = useCheck(evaluator, build.state, turn);
  const ready = (build.state === "ready" || build.state === "none") && (checked.stale || checked.report === null || checked.report.ok);
  const scores = useRowScores(evaluator, draft.rows, { ready, live });
  const setRows = (rows: TestRow[]) => change({ rows });
  const run = () => {
    setTried(true);
    if (Object.keys(row.faults).length > 0 || Object.keys(faults).length > 0 || draft.code.trim() === "") return;
    runs.start(draft, evaluator, row.row);
  };
  const addAndRun = () =>
    runs.start(draft, { ...evaluator, packages: [...draft.packages, "auto"] }, row.row, (result) => {
      const packages = pinsOf(result, draft.language);
      change({ packages, example: null });
      // the draft already has the packages that this warning recommends to pin
      const warnings = result.warnings.filter(({ code }) => code !== "packages_chosen");
      return { draft: { ...draft, packages, example: null }, result: { ...result, warnings } };
    });
  useRunKey(run);
  const content = useMemo(() => contentOf(draft), [draft]);
  const shownContent = useMemo(() => (runs.shown === null ? null : contentOf(runs.shown.draft)), [runs.shown]);
  const previous = runs.shown === null ? undefined : runs.runs[runs.runs.indexOf(runs.shown) + 1];
  const contract = draft.contract === "auto" ? (checked.report?.contract ?? null) : draft.contract;
  const reads = checked.report?.reads.inputs ?? NO_NAMES;
  const goTo = (line: number, column: number | null) => editor.current?.goTo(line, column);
  return (
    <div class={draft.rows.length > 0 ? "page workbench workbench-rows" : "page workbench"}>
      <h1 class="visually-hidden">Workbench</h1>
      {wanted !== null && <ErrorNote title="This link could not be opened" error={wanted} />}
      <div class="workbench-grid">
        <EditorPanel draft={draft} change={change} replace={replace} evaluator={evaluator} faults={faults} examples={examples} checked={checked} build={build} handle={editor} onRun={run} ran={runs.runs.length > 0} aside={aside} />
        <TestPanel row={draft.row} reads={reads} onRow={(changed) => change({ row: changed })} contract={contract} criteria={criteriaOf(classOf(checked.report, draft))} faults={tried ? row.faults : {}} running={runs.running} onRun={run} onStop={runs.stop} onRunOnDataset={() => setDialog("dataset")} />
        <div class="results stack" aria-live="polite" aria-busy={runs.running}>
          {runs.error !== null && <ErrorNote title="The evaluator could not be run" error={runs.error} />}
          {runs.shown !== null ? (
            <section class={shownContent === content ? "panel" : "panel result-stale"}>
              <ResultCard result={runs.shown.result} stale={shownContent !== content} before={previous ?? null} goTo={goTo} pins={lacking(runs.shown.result, checked.report)} onPin={(pin) => change({ packages: [...draft.packages, pin], example: null })} onAddAndRun={runs.running ? undefined : addAndRun} actions={<Copies draft={runs.shown.draft} />} />
            </section>
          ) : (
            runs.error === null && (runs.running ? <Spinner label="Running" /> : 
              <Empty title="No result yet">
                {runs.runs.length === 0 ? <FirstSteps /> : <p>Run the evaluator on the test row to see its score, metrics, logs and timing here.</p>}
              </Empty>
            )
          )}
          <History runs={runs.runs} shown={runs.shown?.number ?? null} onShow={runs.show} onBring={(one) => replace(one.draft)} />
        </div>
      </div>
      <RowGrid
        rows={draft.rows}
        reads={reads}
        onRows={setRows}
        scores={scores}
        live={live}
        onLive={setLive}
        onAdd={() => setDialog("rows")}
        onAddTestRow={() => {
          setTried(true);
          if (Object.keys(row.faults).length === 0) setRows([...draft.rows, newRow(row.row)]);
        }}
        onUse={(one) => change({ row: rowTexts(one.row) })}
      />
      {dialog === "rows" && <StoredRows reads={reads} room={MOST_ROWS - draft.rows.length} onClose={() => setDialog(null)} onTake={(taken) => setRows([...draft.rows, ...taken])} />}
      {dialog === "dataset" && <RunOnDataset draft={draft} evaluator={evaluator} onClose={() => setDialog(null)} />}
    </div>
  );
}

/** Return the packages that a failed run lacked, as far as the check of the current code knows them. */
function lacking(result: Result, report: CheckReport | null): string[] {
  const said = result.error?.message ?? "";
  return (report?.missing_imports ?? []).flatMap(({ module, pin, path }) => (pin !== null && path === null && said.includes(module) ? [pin] : []));
}

/** Return the exact pins that a result was made with. */
function pinsOf(result: Result, language: Language): string[] {
  const between = language === "python" ? "==" : "@";
  return result.environment.packages.filter(({ requested }) => requested).map(({ name, version }) => `${name}${between}${version}`);
}

function Copies({ draft }: { draft: Draft }) {
  const where = { origin: location.origin, withKey: hasKey() };
  const { evaluator } = toEvaluator(draft);
  const { row } = toRow(draft.row);
  return (
    <>
      <CopyButton label="Copy as curl" said="Copied as a curl command" text={() => asCurl(evaluator, row, where)} />
      <CopyButton label="Copy as Python" said="Copied as a Python program" text={() => asPython(evaluator, row, where)} />
    </>
  );
}
