/** Components that the pages of stored things share: page head, facts, moments, chips, scores. */
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { copyText } from "../components/copy-button";
import { toast } from "../components/toasts";
import { Link } from "../router";
import { ago, rounded, moment, NOTHING, percent } from "./format";
import { unitOf, type JobStatus, type Result } from "../api/types";

interface HeadProps {
  title: ComponentChildren;
  /** The parent page. */
  up?: { to: string; label: string };
  /** A chip next to the title. */
  mark?: ComponentChildren;
  children?: ComponentChildren;
}

/** The head of a page: the parent page, the title, and actions. The browser tab has the same title. */
export function PageHead({ title, up, mark, children }: HeadProps) {
  const [shown, parent] = [typeof title === "string" ? title : null, up?.label];
  useEffect(() => {
    if (shown !== null) document.title = [shown, ...(parent === undefined || parent === shown ? [] : [parent]), "Evaluator Host"].join(" · ");
  }, [shown, parent]);
  return (
    <header class="page-head">
      <div class="record-title line">
        {up && (
          <nav aria-label="Breadcrumb">
            <Link to={up.to} class="record-up">
              ‹ {up.label}
            </Link>
          </nav>
        )}
        <h1>{title}</h1>
        {mark}
        {up && <CopyLink />}
      </div>
      {children && <div class="page-actions line">{children}</div>}
    </header>
  );
}

/** Copies the address of the page as it is shown, with its filters. */
function CopyLink() {
  return (
    <button class="icon-button icon-small" type="button" aria-label="Copy the link to this page" title="Copy the link to this page" onClick={() => void copyText(location.href).then((done) => toast(done ? "Link copied" : "The browser does not let this page copy. Select the text and copy it yourself."))}>
      <svg viewBox="0 0 24 24" aria-hidden="true" class="icon">
        <path d="M10 14a4 4 0 0 0 6 .4l3-3a4 4 0 0 0-5.700-5.700l-1.300 1.300M14 10a4 4 0 0 0-6-.4l-3 3a4 4 0 0 0 5.700 5.700l1.300-1.300" />
      </svg>
    </button>
  );
}

export type Fact = readonly [string, ComponentChildren] | false | null | undefined;

/** Names and values, side by side. */
export function Facts({ facts }: { facts: readonly Fact[] }) {
  return (
    <dl class="facts line">
      {facts.map(
        (fact) =>
          fact && (
            <div key={fact[0]} class="fact">
              <dt>{fact[0]}</dt>
              <dd>{fact[1]}</dd>
            </div>
          ),
      )}
    </dl>
  );
}

/** A panel with a heading. */
export function Panel({ title, actions, children, class: given }: { title: string; actions?: ComponentChildren; children: ComponentChildren; class?: string }) {
  return (
    <section class={`panel ${given ?? ""}`} aria-label={title}>
      <div class="panel-head">
        <h2>{title}</h2>
        {actions && <div class="page-actions line">{actions}</div>}
      </div>
      <div class="panel-body">{children}</div>
    </section>
  );
}

/** A time: how long ago, with the full time as a tooltip. */
export function When({ at }: { at: string | null }) {
  if (at === null) return <>{NOTHING}</>;
  return (
    <time dateTime={at} title={moment(at)} class="nowrap">
      {ago(at)}
    </time>
  );
}

const STATUS_CHIPS: Record<string, string> = {
  completed: "chip-pass",
  ready: "chip-pass",
  scored: "chip-pass",
  failed: "chip-fail",
  running: "chip-accent",
  building: "chip-accent",
  queued: "chip-info",
  paused: "chip-warn",
  cancelled: "",
  skipped: "",
};

/** The status of a job or a build, as a chip. */
export function StatusChip({ status }: { status: JobStatus | "ready" | "building" }) {
  return <span class={`chip ${STATUS_CHIPS[status] ?? ""}`}>{status}</span>;
}

interface JobOutcome {
  status: JobStatus;
  evaluators: readonly string[];
  progress: { done: number; failed: number };
  doubt?: string | null;
}

/** The status of a job, with the share of failed rows or results, without which a mean can mislead. */
export function JobChip({ job }: { job: JobOutcome }) {
  const { done, failed } = job.progress;
  if (job.doubt && job.status === "completed" && failed < done) return <span class="chip chip-fail" title={job.doubt.slice(0, 300)}>{`${job.status}, scores doubtful`}</span>;
  if (failed === 0 || job.status === "failed") return <StatusChip status={job.status} />;
  return <span class={`chip ${failed === done ? "chip-fail" : "chip-warn"}`}>{`${job.status}, ${failed === done ? "all" : `${percent(failed / done)}${unitOf(job) === "row" ? "" : " of results"}`} failed`}</span>;
}

/** The tags of an evaluator, each a link to the evaluators with this tag. */
export function Tags({ tags }: { tags: readonly string[] }) {
  if (tags.length === 0) return null;
  return (
    <span class="chips tags">
      {tags.map((tag) => (
        <Link key={tag} to={`/evaluators?tag=${encodeURIComponent(tag)}`} class="chip">
          {tag}
        </Link>
      ))}
    </span>
  );
}

/** The outcome of a row as a chip: passed, not passed, or an error code. */
export function Verdict({ result }: { result: Result }) {
  if (result.status === "failed") return <span class="chip chip-fail">{result.error?.code ?? "failed"}</span>;
  if (result.passed === true) return <span class="chip chip-pass">passed</span>;
  if (result.passed === false) return <span class="chip chip-warn">not passed</span>;
  return <span class="chip">{result.status}</span>;
}

/** A score, with a bar if it is between 0 and 1. */
export function Score({ value }: { value: number | null }) {
  if (value === null) return <span class="muted">{NOTHING}</span>;
  return (
    <span class="score">
      {value >= 0 && value <= 1 && (
        <span class="score-track" aria-hidden="true">
          <span class="score-bar" style={{ width: `${value * 100}%` }} />
        </span>
      )}
      <span>{rounded(value)}</span>
    </span>
  );
}

interface SegmentsProps<T extends string> {
  label: string;
  value: T;
  options: readonly { value: T; label: string }[];
  onValue: (value: T) => void;
}

/** A choice among a few options, side by side. */
export function Segments<T extends string>({ label, value, options, onValue }: SegmentsProps<T>) {
  return (
    <div class="segments" role="group" aria-label={label}>
      {options.map((option) => (
        <button key={option.value} type="button" aria-pressed={option.value === value} onClick={() => onValue(option.value)}>
          {option.label}
        </button>
      ))}
    </div>
  );
}
