import { Prose } from "../components/prose";
import { LANGUAGES } from "../page-words";
import { useHost } from "../host";
import { Link } from "../router";
import type { EvaluatorReport, Limits } from "../api/types";
import { percent, shortId } from "./format";
import { Facts, When } from "./parts";

/** The facts about a version, except its code. */
export function EvaluatorFacts({ report }: { report: EvaluatorReport }) {
  const { evaluator, environment, origin, problem } = report;
  const config = Object.keys(evaluator.settings.config ?? {}).length > 0;
  return (
    <>
      {problem && (
        <div class="note note-error">
          <p class="strong">It does not load{problem.line !== null && `, line ${problem.line}`}</p>
          <p class="pre-wrap">
            <Prose text={problem.message} />
          </p>
          {problem.hint !== null && (
            <p class="muted">
              <Prose text={problem.hint} />
            </p>
          )}
        </div>
      )}
      <Facts
        facts={[
          ["Version", `${report.version} of ${report.latest}`],
          report.message !== "" && ["Message", report.message],
          ["Language", environment?.runtime ? `${LANGUAGES[evaluator.language]}, ${environment.runtime}` : LANGUAGES[evaluator.language]],
          ["Contract", report.contract ? `${report.contract} (${report.contract_source ?? "declared"})` : "unknown"],
          ["Pass threshold", evaluator.threshold === null ? "none" : String(evaluator.threshold)],
          evaluator.packages.length > 0 && ["Packages", <Pins key="pins" report={report} />],
          Object.keys(evaluator.files ?? {}).length > 0 && ["Files", Object.keys(evaluator.files ?? {}).join(", ")],
          Object.keys(evaluator.data ?? {}).length > 0 && ["Data files", Object.keys(evaluator.data ?? {}).join(", ")],
          evaluator.settings.entry !== null && ["Entry", evaluator.settings.entry],
          evaluator.settings.integers && ["Large integers", `as ${evaluator.settings.integers}`],
          config && ["Config", <code key="config">{JSON.stringify(evaluator.settings.config)}</code>],
          ["Limits", <ChangedLimits key="limits" limits={evaluator.limits} />],
          evaluator.models.length > 0 && ["Models", evaluator.models.join(", ")],
          evaluator.network.length > 0 && ["Hosts", evaluator.network.join(", ")],
          Object.keys(evaluator.secrets).length > 0 && ["Secrets", Object.entries(evaluator.secrets).map((one) => one.join("=")).join(", ")],
          evaluator.policy !== "none" && ["Restrictions", evaluator.policy === "restricted" ? "RestrictedPython" : evaluator.policy],
          ["Live traffic", `${percent(report.sampling)} of the traces sent to it`],
          ["Created", <When key="made" at={report.created_at} />],
          report.created_by !== null && ["By", report.author ?? `key ${report.created_by}`],
          origin !== null && ["Migrated from", `version ${origin.version}: ${origin.proof.verdict.replace("_", " ")} on ${origin.proof.rows} rows`],
          ["Digest", <code key="digest">{shortId(report.digest)}</code>],
        ]}
      />
    </>
  );
}

function Pins({ report }: { report: EvaluatorReport }) {
  const pins = report.evaluator.packages.map((pin) => (
    <span key={String(pin)} class="chip mono">
      {String(pin)}
    </span>
  ));
  return (
    <span class="chips">
      {pins}
      {report.environment && <Link to={`/environments/${encodeURIComponent(report.environment.digest)}`}>installed packages</Link>}
    </span>
  );
}

const UNITS: Record<keyof Limits, string> = { timeout_s: "s", memory_mb: "MB memory", processes: "processes", disk_mb: "MB disk", log_kb: "KB logs", result_kb: "KB result" };

function ChangedLimits({ limits }: { limits: Limits }) {
  const defaults = useHost()?.default_limits;
  const names = (Object.keys(UNITS) as (keyof Limits)[]).filter((name) => defaults === undefined || limits[name] !== defaults[name]);
  if (names.length === 0) return <>the host’s defaults</>;
  return <>{names.map((name) => `${limits[name]} ${UNITS[name]}`).join(", ")}</>;
}
