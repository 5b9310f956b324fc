/** Rewrites a legacy evaluator to the new signature and shows the difference and the proof. */
import { useEffect, useRef, useState } from "preact/hooks";
import { isAbort } from "../api/http";
import { Button } from "../components/button";
import { CodeEditor } from "../components/code-editor";
import { Diff } from "../components/diff";
import { ErrorNote } from "../components/error-note";
import { Field, Select } from "../components/field";
import { Spinner } from "../components/spinner";
import { toast } from "../components/toasts";
import { useAction } from "../components/use-action";
import { useRunKey } from "../components/use-run-key";
import { acceptStored, EXAMPLE, type Legacy, migrate, NOTHING, proofRows } from "../migrate/legacy";
import { Verdict } from "../migrate/proof";
import { ProofChoice, StoredChoice } from "../migrate/sources";
import { Link, navigate } from "../router";
import type { PageProps } from "../routes";
import type { EvaluatorIn, Language, Migration } from "../api/types";
import { EMPTY, keepDraft, recalled } from "../workbench/draft";
import { SaveDialog } from "../workbench/stored-dialogs";

const LANGUAGES: readonly { value: Language; label: string }[] = [
  { value: "python", label: "Python" },
  { value: "javascript", label: "JavaScript" },
  { value: "typescript", label: "TypeScript" },
];

interface Answer {
  /** The form at the time of the request. */
  legacy: Legacy;
  rows: Record<string, unknown>;
  migration: Migration;
}

export default function MigratePage(_: PageProps) {
  const [legacy, setLegacy] = useState<Legacy>(NOTHING);
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const abort = useRef<AbortController | null>(null);
  const change = (changes: Partial<Legacy>) => setLegacy((before) => ({ ...before, ...changes }));
  const { rows, fault } = proofRows(legacy);

  const start = (adapt = false) => {
    if (legacy.code.trim() === "" || fault !== null) return;
    abort.current?.abort();
    const own = new AbortController();
    abort.current = own;
    setBusy(true);
    setError(null);
    migrate(legacy, rows, adapt, own.signal)
      .then((migration) => setAnswer({ legacy, rows, migration }))
      .catch((failed: unknown) => !isAbort(failed) && setError(failed))
      .finally(() => abort.current === own && setBusy(false));
  };
  useRunKey(() => start());
  return (
    <div class="page migrate">
      <header class="page-head">
        <div>
          <h1>Import and migration</h1>
          <p class="muted">
            Code of <Link to="/help/coming-from">other platforms</Link> runs as it is: paste it in the workbench. Exports and configurations are read by <code>evaluator-host import</code>: see <Link to="/help/import">Import</Link>.
          </p>
          <p class="muted">
            Here you can rewrite <code>evaluate(app_params, inputs, output, correct_answer)</code> or <code>main</code> as <code>evaluate(inputs, outputs, trace)</code>, with a proof that the scores stay the same.
          </p>
        </div>
      </header>
      <section class="panel" aria-labelledby="legacy-title">
        <header class="panel-head">
          <h2 id="legacy-title" class="visually-hidden">
            Legacy evaluator
          </h2>
          <div class="segments" role="group" aria-label="Language">
            {LANGUAGES.map(({ value, label }) => (
              <button key={value} type="button" aria-pressed={legacy.language === value} onClick={() => change({ language: value, stored: null })}>
                {label}
              </button>
            ))}
          </div>
          <div class="page-actions line">
            <StoredChoice legacy={legacy} replace={setLegacy} />
            <Button small onClick={() => change({ code: EXAMPLE, language: "python", packages: [], stored: null })}>
              Show an example
            </Button>
          </div>
        </header>
        <CodeEditor label="Legacy code" value={legacy.code} syntax={legacy.language} onValue={(code) => change({ code, stored: null })} onSubmit={() => start()} class="legacy-editor" hint="Paste an evaluator with the legacy signature." />
        <div class="migrate-wish line">
          <Select
            label="Migrate to"
            value={legacy.to}
            onValue={(to) => change({ to: to as Legacy["to"] })}
            options={[
              { value: "evaluate", label: "evaluate(inputs, outputs, trace)" },
              { value: "main", label: "main(…)" },
            ]}
          />
          <Field label="Correct answer key" value={legacy.answerKey} onValue={(answerKey) => change({ answerKey })} placeholder="correct_answer" spellcheck={false} autocomplete="off" />
          <ProofChoice legacy={legacy} change={change} fault={fault} />
          <div class="migrate-start">
            {busy && <Button onClick={() => abort.current?.abort()}>Cancel</Button>}
            <Button kind="primary" busy={busy} disabled={legacy.code.trim() === "" || fault !== null} onClick={() => start()}>
              Migrate
            </Button>
          </div>
        </div>
      </section>
      <div aria-live="polite" class="migrate-answer stack">
        {error !== null && <ErrorNote title="The migration failed" error={error} />}
          {busy && <Progress />}
        {answer !== null && <Shown answer={answer} busy={busy} adapt={() => start(true)} />}
      </div>
    </div>
  );
}

/** How long the migration has run. The host rewrites first, then scores rows with both versions. */
function Progress() {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setSeconds((before) => before + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  return <Spinner label={`Rewriting the code and scoring rows with both versions (${seconds} s so far)`} />;
}

function Shown({ answer, busy, adapt }: { answer: Answer; busy: boolean; adapt: () => void }) {
  const { migration, legacy } = answer;
  const made = migration.status === "migrated" || migration.status === "adapted";
  const failed = migration.status === "refused" || (migration.status === "migrated" && migration.proof?.verdict === "differs");
  return (
    <>
      <Verdict
        migration={migration}
        actions={
          <>
            {failed && legacy.to === "evaluate" && (
              <Button small kind="primary" busy={busy} onClick={adapt}>
                Keep the code, add an adapter
              </Button>
            )}
            {made && <Accept answer={answer} />}
          </>
        }
      />
      {made && <Diff before={legacy.code} after={migration.code} syntax={migration.language} labels={["Legacy", "Migrated"]} />}
    </>
  );
}

/** Buttons that open the new code in the editor, or save it; a stored evaluator gets its next version, with the proof. */
function Accept({ answer: { legacy, rows, migration } }: { answer: Answer }) {
  const [saving, setSaving] = useState(false);
  const { busy, error, run } = useAction();
  const stored = legacy.to === "evaluate" ? legacy.stored : null;
  const proven = migration.proof?.verdict === "proven";
  const evaluator: EvaluatorIn = {
    code: migration.code,
    language: migration.language,
    ...(legacy.packages.length > 0 ? { packages: legacy.packages } : {}),
  };
  const open = () => {
    const name = legacy.stored === null ? null : { name: legacy.stored.name, version: legacy.stored.version };
    keepDraft({ ...(recalled() ?? EMPTY), code: migration.code, language: migration.language, packages: legacy.packages, contract: "auto", stored: name, example: null });
    navigate("/");
  };
  const accept = (name: string) =>
    run(async () => {
      const made = await acceptStored(name, rows, { force: !proven, adapt: migration.status === "adapted" });
      toast(made === null ? `${name} was not changed` : `${name} is now at version ${made}`);
    });
  return (
    <>
      <Button small onClick={open}>
        Open in the workbench
      </Button>
      {stored === null ? (
        <Button small kind={proven ? "primary" : "plain"} onClick={() => setSaving(true)}>
          Save…
        </Button>
      ) : (
        <Button small kind={proven ? "primary" : "danger"} busy={busy} onClick={() => void accept(stored.name)}>
          {proven ? `Save as version ${stored.latest + 1} of ${stored.name}` : `Save as version ${stored.latest + 1} without a proof`}
        </Button>
      )}
      {error !== null && <ErrorNote title="No version was created" error={error} />}
      {saving && (
        <SaveDialog
          evaluator={evaluator}
          name={legacy.stored?.name ?? ""}
          onClose={() => setSaving(false)}
          onSaved={(report) => {
            setSaving(false);
            toast(`Saved as ${report.name}, version ${report.version}`);
          }}
        />
      )}
    </>
  );
}
