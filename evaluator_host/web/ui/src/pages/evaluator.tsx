import { useState } from "preact/hooks";
import { call } from "../api/http";
import { Button } from "../components/button";
import { CodeEditor } from "../components/code-editor";
import { Diff } from "../components/diff";
import { Select } from "../components/field";
import { Spinner } from "../components/spinner";
import { toast } from "../components/toasts";
import { useLoaded } from "../components/use-loaded";
import { Confirm } from "../resources/confirm";
import { EvaluatorFacts } from "../resources/evaluator-facts";
import { DescribeDialog } from "../resources/describe-dialog";
import { ago, counted, rounded, oneLine } from "../resources/format";
import { NotThere } from "../resources/not-there";
import { Facts, PageHead, Panel, Segments, Tags } from "../resources/parts";
import { ScoreTrend } from "../resources/score-trend";
import { Traces } from "../traces/traces";
import { UseIt } from "../resources/use-it";
import { Value } from "../resources/value";
import { useHas } from "../host";
import { Link, navigate, setQuery } from "../router";
import type { PageProps } from "../routes";
import type { EvaluatorReport, Judge } from "../api/types";
import { EMPTY, toEvaluator, withStored } from "../workbench/draft";

type Tab = "code" | "scores" | "diff" | "traces";

const TABS: readonly { value: Tab; label: string }[] = [
  { value: "code", label: "Code" },
  { value: "scores", label: "Jobs and scores" },
  { value: "diff", label: "Differences" },
  { value: "traces", label: "Live traces" },
];

/** One evaluator: its versions, their differences, and the scores of live traffic. */
export default function EvaluatorPage({ params, query }: PageProps) {
  const name = params["name"] ?? "";
  const route = `/v1/evaluators/${encodeURIComponent(name)}`;
  const found = useLoaded((signal) => call<EvaluatorReport[]>("GET", `${route}/versions`, { signal }), [name]);
  const [restoring, setRestoring] = useState(false);
  const [describing, setDescribing] = useState(false);
  const has = useHas();
  const tabs = TABS.filter(({ value }) => value !== "traces" || has("traces"));
  const up = { to: "/evaluators", label: "Evaluators" };
  if (found.value === null) {
    return (
      <div class="page">
        <PageHead title={name} up={up} />
        {found.error === null ? <Spinner label="Loading the evaluator" /> : <NotThere error={found.error} onRetry={found.reload} list={{ to: "/evaluators", label: "All evaluators" }} at={(one) => `/evaluators/${encodeURIComponent(one)}`} />}
      </div>
    );
  }
  const versions = found.value;
  const shown = versions.find((one) => String(one.version) === query.get("version")) ?? versions[0]!;
  const tab = tabs.find((one) => one.value === query.get("tab"))?.value ?? "code";
  const reference = `${name}@${shown.version}`;
  /** Makes this version the newest one again. */
  const restore = async () => {
    setRestoring(true);
    try {
      const { code, ...evaluator } = withEvaluator(shown).evaluator;
      const { judge } = shown.evaluator;
      await call("PUT", route, { body: { ...(judge === null ? { code } : { judge }), ...evaluator, message: `Version ${shown.version} again`, cases: shown.cases }, query: { force: true } });
      toast(`Version ${shown.version} is the newest again`);
      setQuery({ version: null });
      found.reload();
    } catch (fault) {
      toast(fault instanceof Error ? fault.message : String(fault));
    }
    setRestoring(false);
  };
  const remove = async (force = false) => {
    await call("DELETE", route, { query: { force } });
    toast(`${name} was deleted`);
    navigate("/evaluators");
  };
  return (
    <div class="page">
      <PageHead title={name} up={up} mark={<span class="chip">{counted(versions.length, "version")}</span>}>
        {shown.evaluator.judge !== null && (
          <Link to={`/judge?evaluator=${encodeURIComponent(reference)}`} class="button button-primary">
            Edit the judge
          </Link>
        )}
        <Link to={`/?evaluator=${encodeURIComponent(reference)}`} class={`button ${shown.evaluator.judge === null ? "button-primary" : "button-plain"}`}>
          Open in the workbench
        </Link>
        {shown.version !== versions[0]!.version && (
          <Button busy={restoring} onClick={() => void restore()}>
            {`Restore as version ${versions[0]!.version + 1}`}
          </Button>
        )}
        <Link to={`/jobs/new?evaluator=${encodeURIComponent(reference)}`} class="button button-plain">
          Start a job
        </Link>
        <UseIt reference={reference} />
        <Confirm label="Delete" title={`Delete ${name}?`} onConfirm={() => remove()} onForce={() => remove(true)}>
          This deletes all {counted(versions.length, "version")} and the scored live traces. Jobs keep the code that they ran.
        </Confirm>
      </PageHead>
      <div class="record-description">
        {shown.description && <p>{shown.description}</p>}
        <Tags tags={shown.tags} />
        <Button kind="quiet" small onClick={() => setDescribing(true)}>
          Description and tags…
        </Button>
      </div>
      {describing && <DescribeDialog report={shown} onClose={() => setDescribing(false)} onSaved={found.reload} />}
      <div class="record-bar line">
        <Segments label="What to show" value={tab} options={tabs} onValue={(value) => setQuery({ tab: value === "code" ? null : value })} />
        {tab === "code" && (
          <Select label="Version" bare value={String(shown.version)} onValue={(value) => setQuery({ version: value === String(versions[0]!.version) ? null : value })} options={versionOptions(versions)} />
        )}
      </div>
      {tab === "code" && <Version report={shown} />}
      {tab === "scores" && <ScoreTrend name={name} />}
      {tab === "diff" && <Differences versions={versions} from={query.get("from")} to={query.get("to")} />}
      {tab === "traces" && <Traces name={name} chosen={query.get("trace")} />}
    </div>
  );
}

function withEvaluator(report: EvaluatorReport) {
  return toEvaluator(withStored(EMPTY, report.evaluator, null));
}

function versionOptions(versions: readonly EvaluatorReport[]) {
  return versions.map((one) => ({ value: String(one.version), label: [`Version ${one.version}`, ago(one.created_at), one.author ?? "", oneLine(one.message, 60)].filter(Boolean).join(", ") }));
}

function Version({ report }: { report: EvaluatorReport }) {
  return (
    <div class="record-columns">
      {report.evaluator.judge !== null ? (
        <JudgeForm judge={report.evaluator.judge as Judge} version={report.version} />
      ) : (
        <Panel title={`Code of version ${report.version}`} class="record-main panel-flush">
          <CodeEditor label={`Code of version ${report.version}`} value={report.evaluator.code} syntax={report.evaluator.language} readOnly class="code-tall" />
        </Panel>
      )}
      <Panel title="About it" class="record-side">
        <EvaluatorFacts report={report} />
      </Panel>
    </div>
  );
}

/** The fields of a judge; the host makes the judge's code from them. */
function JudgeForm({ judge, version }: { judge: Judge; version: number }) {
  const { scale, labels } = judge;
  return (
    <Panel title={`Judge, version ${version}`} class="record-main panel-stack">
      <section class="named-value">
        <h3>Prompt</h3>
        <Value label="Prompt" value={judge.prompt} />
      </section>
      {judge.system && (
        <section class="named-value">
          <h3>System</h3>
          <Value label="System" value={judge.system} />
        </section>
      )}
      <Facts
        facts={[
          ["Model", judge.model],
          scale != null && ["Answers", `a number from ${scale.min} to ${scale.max}`],
          labels !== undefined && labels.length > 0 && ["Answers", labels.map(({ label, score }) => `${label} (${rounded(score)})`).join(", ")],
          (judge.examples ?? []).length > 0 && ["Examples", String((judge.examples ?? []).length)],
        ]}
      />
    </Panel>
  );
}

function Differences({ versions, from, to }: { versions: readonly EvaluatorReport[]; from: string | null; to: string | null }) {
  if (versions.length < 2) return <p class="muted">There is only one version, so there is nothing to compare. To create the next version, open this one in the workbench, change it and save it.</p>;
  const by = (wanted: string | null, otherwise: EvaluatorReport) => versions.find((one) => String(one.version) === wanted) ?? otherwise;
  const [later, earlier] = [by(to, versions[0]!), by(from, versions[1]!)];
  const options = versionOptions(versions);
  return (
    <>
      <div class="record-bar line">
        <Select label="From" value={String(earlier.version)} options={options} onValue={(value) => setQuery({ from: value })} />
        <Select label="To" value={String(later.version)} options={options} onValue={(value) => setQuery({ to: value })} />
      </div>
      <Settings earlier={earlier} later={later} />
      {earlier.evaluator.code === later.evaluator.code ? (
        <p class="muted">The code is the same.</p>
      ) : (
        <Diff before={earlier.evaluator.code} after={later.evaluator.code} syntax={later.evaluator.language} labels={[`Version ${earlier.version}`, `Version ${later.version}`]} />
      )}
    </>
  );
}

/** The settings that differ between two versions. */
function Settings({ earlier, later }: { earlier: EvaluatorReport; later: EvaluatorReport }) {
  const names = ["language", "contract", "packages", "threshold", "settings", "limits", "policy", "files", "path", "data", "judge", "models", "network", "secrets", "budget"] as const;
  const changed = names.filter((name) => JSON.stringify(earlier.evaluator[name]) !== JSON.stringify(later.evaluator[name]));
  if (changed.length === 0) return null;
  return (
    <Panel title="Settings">
      <ul class="setting-changes wrap stack-tight">
        {changed.map((name) => (
          <li key={name}>
            <strong>{name}</strong> <del>{JSON.stringify(earlier.evaluator[name])}</del> → <ins>{JSON.stringify(later.evaluator[name])}</ins>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
