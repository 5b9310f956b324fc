/** The editor panel: language, examples, stored evaluators, the code, and the result of its check. */
import type { Example } from "examples:all";
import type { RefObject } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Button } from "../components/button";
import { CodeEditor, type CodeEditorHandle, type Mark } from "../components/code-editor";
import { typeOf } from "../editor/types";
import { serverOf } from "../editor/language";
import type { Syntax } from "../editor/mirror";
import { ErrorNote } from "../components/error-note";
import { Prose } from "../components/prose";
import { toast } from "../components/toasts";
import { isObject } from "../json";
import { inPageWords, LANGUAGES } from "../page-words";
import { oneLine } from "../resources/format";
import { Link } from "../router";
import { keep, recall } from "../storage";
import type { CheckReport, EvaluatorIn, Fix, Language } from "../api/types";
import { type Draft, type Faults, fromExample, opened, withDropped } from "./draft";
import { DropHint, useDrop } from "../resources/drop-zone";
import type { Dropped } from "./dropped";
import { Files } from "./files";
import { Gallery } from "./gallery";
import { Packages } from "./packages";
import { pastedLanguage } from "./pasted-language";
import { Warnings } from "./result-card";
import { SettingsPanel } from "./settings";
import { knownOf, parametersOf } from "./signature";
import { type StoredChange, useStoredChange } from "./stored-changes";
import { OpenDialog, SaveDialog } from "./stored-dialogs";
import type { Build } from "./use-build";
import type { Checked } from "./use-check";
import { useRemarks } from "./use-remarks";

const WRAP = "wrap";
const SIGNATURE = "signature";
const NARROW = matchMedia("(max-width: 760px)");
const SHOWN_CHARS = 8000; // maximum characters to show of each possible repair
const CHOICES: readonly { value: Language; label: string }[] = [
  { value: "python", label: "Python" },
  { value: "javascript", label: "JavaScript" },
  { value: "typescript", label: "TypeScript" },
];

interface EditorPanelProps {
  draft: Draft;
  change: (changes: Partial<Draft>) => void;
  replace: (draft: Draft) => void;
  evaluator: EvaluatorIn;
  faults: Faults;
  examples: readonly Example[];
  checked: Checked;
  build: Build;
  handle: RefObject<CodeEditorHandle | null>;
  onRun: () => void;
  /** Whether the user has run anything in this tab. */
  ran: boolean;
  /** The previous draft, if it contained code of the user. */
  aside: Draft | null;
}

export function EditorPanel({ draft, change, replace, evaluator, faults, examples, checked, build, handle, onRun, ran, aside }: EditorPanelProps) {
  const [dialog, setDialog] = useState<"open" | "save" | "examples" | null>(null);
  const [shown, setShown] = useState<string | null>(null);
  const file = shown !== null && shown in draft.files ? shown : null;
  const [wrap, setWrap] = useState(recall(WRAP) === "yes");
  const toggleWrap = () => {
    keep(WRAP, wrap ? null : "yes");
    setWrap(!wrap);
  };
  const contract = draft.contract === "auto" ? (checked.report?.contract ?? null) : draft.contract;
  const known = () => knownOf(draft, contract);
  const [fault, setFault] = useState<Mark | null>(null);
  const ownFault = checked.stale || checked.report === null ? fault : null; // the host's check takes precedence
  const found = useMemo(() => marksOf(checked.report, file), [checked.report, file]);
  const installed = build.state === "ready" || build.state === "none";
  const storedChange = useStoredChange(draft, evaluator);
  const server = () => (installed ? serverOf(evaluator, Object.fromEntries(known().parameters.map(({ name, value }) => [name, value ?? null])), typeOf) : null);
  const remarks = useRemarks(draft.code, server, !checked.stale && checked.report?.ok === true && isOurs(contract));
  const marks = useMemo(() => (ownFault === null ? [...found, ...(file === null ? remarks : [])] : [ownFault]), [ownFault, found, remarks, file]);
  const missing = checked.report?.missing_imports ?? [];
  const take = async (read: (reader: typeof import("./dropped"), keeps: (folder: string) => boolean) => Promise<Dropped>) => {
    const keeps = (folder: string) => missing.some(({ path }) => path !== null && (path === `${folder}.py` || path.startsWith(`${folder}/`)));
    try {
      const reader = await import("./dropped");
      const { files, left } = await read(reader, keeps);
      const count = Object.keys(files).length;
      if (count > 0) change(withDropped(draft, files));
      const added = count === 0 ? "There is nothing to add" : count === 1 ? `Added ${Object.keys(files)[0]}` : `Added ${count} files`;
      const more = left.length > 3 ? `, and ${left.length - 3} more` : "";
      toast(left.length === 0 ? added : `${added}; left out: ${left.slice(0, 3).join(", ")}${more}`);
    } catch (fault) {
      toast(fault instanceof Error ? fault.message : String(fault));
    }
  };
  const dropping = useDrop((transfer) => {
    // a browser forgets the entries after the event
    const entries = [...transfer.items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
    const files = [...transfer.files];
    void take((reader, keeps) => (entries.length > 0 ? reader.readEntries(entries, keeps) : reader.readFiles(files, keeps)));
  });
  const format = async () => {
    const text = handle.current?.text() ?? "";
    try {
      const { formatted } = await import("../editor/format");
      const made = await formatted(text, syntaxOf(file, draft.language));
      if (made === text) toast("The code is formatted already");
      else handle.current?.replace(made);
    } catch (fault) {
      toast(`The code cannot be formatted: ${fault instanceof Error ? fault.message.split("\n")[0] : String(fault)}`);
    }
  };
  const setLanguage = (language: Language) => {
    const example = examples.find((one) => one.id === draft.example);
    if (example?.programs[language] !== undefined) replace({ ...fromExample(example, language), row: draft.row });
    else change({ language, packages: language === "python" || draft.language === "python" ? [] : draft.packages });
  };
  const pasted = useRef("");
  const write = (text: string) => {
    if (file !== null) return change({ files: { ...draft.files, [file]: text }, example: null });
    const language = pasted.current !== "" && plain(text) === pasted.current ? pastedLanguage(text, draft.language) : null;
    pasted.current = "";
    if (language === null) return change({ code: text, example: null });
    const before = { language: draft.language, packages: draft.packages };
    change({ code: text, example: null, language, packages: language === "python" || before.language === "python" ? [] : before.packages });
    toast(`The pasted code looks like ${LANGUAGES[language]}, which is now the language`, { act: () => change(before), label: `Back to ${LANGUAGES[before.language]}` });
  };
  return (
    <section class="panel editor-panel" aria-labelledby="editor-title" {...dropping.on} onPasteCapture={(event) => void (pasted.current = plain(event.clipboardData?.getData("text/plain") ?? ""))}>
      {dropping.above && <DropHint>Drop files, a folder or a zip archive</DropHint>}
      <header class="panel-head editor-head">
        <h2 id="editor-title" class="visually-hidden">
          Evaluator
        </h2>
        <div class="segments" role="group" aria-label="Language">
          {CHOICES.map(({ value, label }) => (
            <button key={value} type="button" aria-pressed={draft.language === value} onClick={() => setLanguage(value)}>
              {label}
            </button>
          ))}
        </div>
        <div class="page-actions line">
          <Button small onClick={() => setDialog("examples")}>
            Examples…
          </Button>
          <Button small onClick={() => setDialog("open")}>
            Open…
          </Button>
          <Button small onClick={() => setDialog("save")} disabled={draft.code.trim() === ""}>
            Save…
          </Button>
        </div>
      </header>
      <Signature draft={draft} contract={contract} ran={ran} />
      <Files draft={draft} change={change} shown={file} onShow={setShown} missing={missing} onPick={(files) => void take((reader, keeps) => reader.readFiles(files, keeps))} />
      <CodeEditor key={file ?? ""} label={file === null ? "Code of the evaluator" : `Text of ${file}`} value={file === null ? draft.code : draft.files[file] ?? ""} syntax={syntaxOf(file, draft.language)} marks={marks} handle={handle} onValue={write} onSubmit={onRun} onSyntax={setFault} wrap={wrap} {...(file === null ? { known, server } : {})} class="main-editor" hint="Paste or write an evaluator: a function evaluate(inputs, outputs, trace) that returns a number, a bool, or an object with a score." />
      <EditorHints wrap={wrap} onWrap={toggleWrap} onFormat={format} />
      {aside !== null && (
        <p class="aside line">
          <span class="muted">Your previous code was set aside.</span>
          <Button kind="quiet" small onClick={() => replace(aside)}>
            Restore it
          </Button>
        </p>
      )}
      <StatusLine draft={draft} storedChange={storedChange} checked={checked} fault={ownFault} waiting={build.state === "building"} />
      {!checked.stale && checked.report !== null && <Warnings notes={checked.report.notes} />}
      {!checked.stale && file === null && <RewriteOffer code={checked.report?.rewritten ?? null} onRewrite={(code) => handle.current?.replace(code)} />}
      <FixOffer fix={checked.stale ? null : (checked.report?.problems[0]?.fix ?? null)} onFix={(code) => change({ code, example: null })} />
      {checked.error !== null && (
        <div class="editor-error">
          <ErrorNote title="The check failed" error={checked.error} />
        </div>
      )}
      <Packages language={draft.language} packages={draft.packages} onPackages={(packages) => change({ packages, example: null })} missing={missing} build={build} />
      <SettingsPanel draft={draft} change={change} faults={faults} report={checked.report} />
      {dialog === "examples" && (
        <Gallery
          examples={examples}
          chosen={draft.example}
          onClose={() => setDialog(null)}
          onExample={(example) => {
            replace(fromExample(example, draft.language));
            setDialog(null);
          }}
        />
      )}
      {dialog === "open" && (
        <OpenDialog
          onClose={() => setDialog(null)}
          onOpen={(report) => {
            replace(opened(draft, report));
            setDialog(null);
          }}
          onDraft={(earlier) => {
            replace(earlier);
            setDialog(null);
          }}
        />
      )}
      {dialog === "save" && (
        <SaveDialog
          evaluator={evaluator}
          name={storedChange === "replaced" ? "" : (draft.stored?.name ?? "")}
          replaced={storedChange === "replaced" ? draft.stored : null}
          rows={draft.rows}
          onClose={() => setDialog(null)}
          onSaved={(report, isNew) => {
            change({ stored: { name: report.name, version: report.version } });
            setDialog(null);
            toast(isNew ? `Saved as ${report.name}, version ${report.version}` : `Nothing to save: ${report.name}, version ${report.version}, is the same`);
          }}
        />
      )}
    </section>
  );
}

/** Return text as the editor has it, without the space around it. */
function plain(text: string): string {
  return text.replace(/\r\n?/g, "\n").trim();
}

const HINTS: readonly (readonly [string, string])[] = [
  ["Tab", "indents"],
  ["Esc, Tab", "leaves the editor"],
  ["Ctrl Space", "completes"],
  ["Ctrl F", "opens the search"],
  ["Ctrl Enter", "runs"],
];

/** Shows the keys of the editor, and a switch for wrapping long lines. */
function EditorHints({ wrap, onWrap, onFormat }: { wrap: boolean; onWrap: () => void; onFormat: () => Promise<void> }) {
  const [busy, setBusy] = useState(false);
  const format = () => {
    setBusy(true);
    void onFormat().finally(() => setBusy(false));
  };
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.altKey && !event.ctrlKey && !event.metaKey && event.code === "KeyZ") {
        event.preventDefault();
        onWrap();
      } else if (event.altKey && event.shiftKey && event.code === "KeyF") {
        event.preventDefault();
        format();
      }
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  });
  return (
    <div class="editor-hints muted">
      <span class="editor-keys line" title={HINTS.map(([key, does]) => `${key} ${does}`).join(", ")}>
        <kbd>Esc, Tab</kbd> leaves the editor, <kbd>?</kbd> all keys
      </span>
      <button type="button" class="link-button" aria-busy={busy} title="Shift+Alt+F" onClick={format}>
        {busy ? "Formatting…" : "Format"}
      </button>
      <button type="button" class="link-button" aria-pressed={wrap} title="Alt+Z" onClick={onWrap}>
        {wrap ? "Do not wrap lines" : "Wrap lines"}
      </button>
    </div>
  );
}

function isOurs(contract: string | null): boolean {
  return contract === null || contract === "evaluate" || contract === "evaluate-v1" || contract === "main";
}

/** The arguments and allowed results of the function; folded after the first run, until the user unfolds it. */
function Signature({ draft, contract, ran }: { draft: Draft; contract: string | null; ran: boolean }) {
  const chosen = recall(SIGNATURE);
  const [open, setOpen] = useState(chosen === null ? !ran && !NARROW.matches : chosen === "open");
  useEffect(() => {
    if (ran && recall(SIGNATURE) === null) setOpen(false);
  }, [ran]);
  const parameters = parametersOf(draft, contract);
  const ours = isOurs(contract);
  const toggle = (now: boolean) => {
    keep(SIGNATURE, now ? "open" : "closed");
    setOpen(now);
  };
  return (
    <details class="signature" open={open} onToggle={(event) => event.currentTarget.open !== open && toggle(event.currentTarget.open)}>
      <summary>
        <code>{contract === "main" ? "main" : ours ? "evaluate" : contract}</code> {ours ? `(${parameters.map(({ name }) => name).join(", ")})` : "as its platform calls it"}
      </summary>
      {ours ? (
        <dl class="signature-parts">
          {parameters.map(({ name, what, value }) => (
            <div key={name}>
              <dt>
                <code>{name}</code>
              </dt>
              <dd>
                {what}
                {isObject(value) && Object.keys(value).length > 0 && <span class="muted"> (here {oneLine(Object.keys(value).join(", "), 60)})</span>}
              </dd>
            </div>
          ))}
          <div>
            <dt>return</dt>
            <dd>
              a number or a bool; a number with a reason: <code>0.5, "why"</code>; or{" "}
              <code>{draft.language === "python" ? '{"score": 0.5, "passed": True, "reason": "why", "label": "tone"}' : '{score: 0.5, passed: true, reason: "why", label: "tone"}'}</code>. Other numbers in it are metrics.
            </dd>
          </div>
        </dl>
      ) : (
        <p class="muted">
          Another platform’s code, which runs as it is. <Link to="/help/contracts">Contracts</Link> says how it is called.
        </p>
      )}
    </details>
  );
}

/** The contract and its origin, the number of faults, and the name of the stored evaluator. */
function StatusLine({ draft, storedChange, checked, fault, waiting }: { draft: Draft; storedChange: StoredChange; checked: Checked; fault: Mark | null; waiting: boolean }) {
  const { report, stale } = checked;
  const faults = (report?.problems.length ?? 0) + (report?.missing_imports.length ?? 0);
  const first = report?.problems[0];
  return (
    <div class={stale && report !== null ? "status-line line status-stale" : "status-line line"} role="status">
      {checked.checking && <span class="spinner-ring" aria-hidden="true" />}
      {report !== null && report.contract !== null && (
        <span>
          <span class={stale ? "chip" : "chip chip-accent"}>{report.contract}</span> <span class="muted">{report.reason}</span>
        </span>
      )}
      {fault !== null && (
        <span class="fail">
          Line {fault.line}: {fault.message}
        </span>
      )}
      {stale && fault === null && report !== null && checked.error === null && <span class="muted">{waiting ? "Changed; waiting for the packages…" : "Changed; checking…"}</span>}
      {!stale && first !== undefined && (
        <span class="fail">
          {first.line !== null ? `Line ${first.line}: ` : ""}
          <Prose text={first.message} most={300} />
          {first.hint !== null && first.fix === null && (
            <span class="muted">
              {" – "}
              <Prose text={first.hint} most={300} />
            </span>
          )}
        </span>
      )}
      {!stale && report !== null && faults === 0 && report.contract !== null && <span class="pass">✓ loads</span>}
      {report === null && checked.error === null && fault === null && <span class="muted">{draft.code.trim() === "" ? "Nothing to check yet" : waiting ? "Waiting for the packages…" : "Checking…"}</span>}
      {draft.stored !== null && (
        <span class="push">
          <Link to={`/evaluators/${encodeURIComponent(draft.stored.name)}`}>
            {draft.stored.name}@{draft.stored.version}
          </Link>
          {storedChange === "changed" && <span class="muted"> · changed</span>}
          {storedChange === "replaced" && <span class="muted"> · replaced by other code</span>}
        </span>
      )}
    </div>
  );
}

/** A button that renames the parameters after their values, and sets the old names from the new ones; undo restores the code. */
function RewriteOffer({ code, onRewrite }: { code: string | null; onRewrite: (code: string) => void }) {
  if (code === null) return null;
  return (
    <p class="aside line">
      <Button small onClick={() => onRewrite(code)}>
        Rewrite the parameters
      </Button>
      <span class="muted">so that each parameter gets what its name says</span>
    </p>
  );
}

/** A button for the one probable repair of the code, or a choice of several. */
function FixOffer({ fix, onFix }: { fix: Fix | null; onFix: (code: string) => void }) {
  if (fix === null) return null;
  const { code, candidates } = fix;
  if (code !== null)
    return (
      <p class="aside line">
        <span class="muted">The code lost its indentation. There is only one way to restore it.</span>
        <Button small onClick={() => onFix(code)}>
          Restore the indentation
        </Button>
      </p>
    );
  return (
    <div class="aside line">
      <span class="muted">The code lost its indentation. There are several ways to restore it: choose one.</span>
      {candidates.map((one, index) => (
        <details key={one.code}>
          <summary>Possibility {index + 1}</summary>
          <pre class="output" tabIndex={0} role="region" aria-label={`Possibility ${index + 1}`}>
            {one.code.slice(0, SHOWN_CHARS)}
          </pre>
          <Button small onClick={() => onFix(one.code)}>
            Take possibility {index + 1}
          </Button>
        </details>
      ))}
    </div>
  );
}

/** The syntax of a file; with null, that of the code. */
function syntaxOf(file: string | null, language: Language): Syntax {
  if (file === null) return language;
  if (file.endsWith(".py")) return "python";
  if (file.endsWith(".json")) return "json";
  if (/\.[cm]?tsx?$/.test(file)) return "typescript";
  return /\.[cm]?jsx?$/.test(file) ? "javascript" : "text";
}

/** The faults of the code, or of one of its files. */
function marksOf(report: CheckReport | null, file: string | null): readonly Mark[] {
  if (report === null) return [];
  const importing = report.missing_imports.filter((one) => one.file === file);
  const problems = report.problems.map(({ line, column, message, hint }): Mark => ({ line: line ?? 1, column, severity: "error", message: inPageWords(hint === null ? message : `${message}\n${hint}`) }));
  const missing = importing.map(({ module, line, hint }): Mark => ({ line, column: null, severity: "warning", message: inPageWords(hint === null ? `${module} is missing.` : `${module} is missing.\n${hint}`) }));
  if (file !== null) return missing;
  const classes = (report.classes ?? []).flatMap(
    ({ name, line, error }): Mark[] => (error === null ? [] : [{ line: error.line ?? line ?? 1, column: error.column, severity: "warning", message: `${name}: ${error.message}` }]),
  );
  return [...problems, ...missing, ...classes];
}
