/** The statistics of one evaluator in a job, as numbers and as a plot. */
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { call } from "../api/http";
import { Field, Select } from "../components/field";
import { Table } from "../components/table";
import { useLoaded } from "../components/use-loaded";
import { Link, setQuery } from "../router";
import { keep, recall } from "../storage";
import { count, counted, rounded, justBelow, milliseconds, oneLine, passInterval, passRate, percent } from "./format";
import { Panel, Verdict } from "./parts";
import { Plot } from "./plot";
import { ResultView } from "./result-view";
import { usageInWords } from "./usage";
import { type Aggregate, type EvaluatorStatistics, type JobReport, type JobRowPage } from "../api/types";

interface StatisticsProps {
  job: JobReport;
  statistics: EvaluatorStatistics;
  metric: string | null;
  /** A new value makes the statistics load again. */
  stamp: string;
}

/** Statistics below the rows: the score of all rows together, reasons of failures, the distribution. */
export function MoreStatistics({ job, statistics, metric, stamp }: StatisticsProps) {
  return (
    <>
      {statistics.together && (
        <Panel title="All rows combined">
          <ResultView result={statistics.together} />
        </Panel>
      )}
      <Details job={job} statistics={statistics} metric={metric} stamp={stamp} />
    </>
  );
}

/** The most important statistics. */
export function Headline({ job, statistics }: Pick<StatisticsProps, "job" | "statistics">) {
  const score = statistics.metrics.find((one) => one.name === "score");
  return (
    <ul class="tiles" aria-label={`Statistics of ${statistics.evaluator}`}>
      <Tile name="Mean score" value={rounded(score?.mean)} tone={statistics.failed > 0 ? "warn" : ""} note={meanNote(statistics, score, job.config.failures === "zero")} />
      <Tile name="Passed" value={percent(statistics.pass_rate)} tone={statistics.failed > 0 && statistics.pass_rate !== null ? "warn" : ""} note={passedNote(job, statistics)} />
      <Tile name="Scored" value={count(statistics.scored)} note={statistics.skipped > 0 ? `${count(statistics.skipped)} skipped` : ""} />
      <Tile name="Failed" value={count(statistics.failed)} tone={statistics.failed > 0 ? "fail" : ""} note={statistics.failed > 0 ? `${percent(statistics.failed / statistics.rows)}: an error, so no score` : ""} />
      <Tile name="Run time, median" value={milliseconds(statistics.run_ms?.p50)} note={statistics.run_ms ? `p99 ${milliseconds(statistics.run_ms.p99)}` : ""} />
      {statistics.usage && <Tile name="Cost of models" value={rounded(statistics.usage.cost)} note={usageInWords({ ...statistics.usage, cost: null }).replace(" · cost not known", "")} />}
    </ul>
  );
}

const FEW_METRICS = 6; // maximum number of metrics, besides the score, that are shown without unfolding them

/** The metrics of an evaluator that has a few, besides the score. */
export function FewMetrics({ statistics }: { statistics: EvaluatorStatistics }) {
  return hasFew(statistics) ? <Metrics metrics={statistics.metrics} /> : null;
}

function hasFew({ metrics }: EvaluatorStatistics): boolean {
  const others = metrics.filter(({ name }) => name !== "score").length;
  return others > 0 && others <= FEW_METRICS;
}

const OPEN = "job-plots";

/** Plot, slowest rows and metrics, open or closed as this browser remembers. */
function Details({ job, statistics, metric, stamp }: StatisticsProps) {
  const [open, setOpen] = useState(recall(OPEN) === "open" || metric !== null);
  const folds = statistics.metrics.length > 1 && !hasFew(statistics);
  const shown = statistics.metrics.find((one) => one.name === metric) ?? statistics.metrics.find((one) => one.name === "score") ?? statistics.metrics[0];
  const toggle = (isOpen: boolean) => {
    setOpen(isOpen);
    keep(OPEN, isOpen ? "open" : null);
  };
  return (
    <details class="job-plots" open={open} onToggle={(event) => event.currentTarget.open !== open && toggle(event.currentTarget.open)}>
      <summary>Distribution, slowest rows{folds && `, ${count(statistics.metrics.length)} metrics`}</summary>
      {open && (
        <>
          <div class="statistics-columns">
            {shown && <Distribution job={job} metrics={statistics.metrics} shown={shown} zeros={job.config.failures === "zero" ? statistics.failed : 0} />}
            <Slowest job={job} evaluator={statistics.evaluator} stamp={stamp} />
          </div>
          {folds && <Metrics metrics={statistics.metrics} />}
        </>
      )}
    </details>
  );
}

/** The statistics of every evaluator of a job; one is chosen by its name. */
export function EveryEvaluator({ evaluators, chosen, open, onChoose }: { evaluators: readonly EvaluatorStatistics[]; chosen: string; open: boolean; onChoose: (evaluator: string) => void }) {
  const heads = ["Evaluator", "Mean score", "Passed", "Scored", "Failed"];
  return (
    <details class="plot-data" open={open}>
      <summary>Scores of {count(evaluators.length)} evaluators</summary>
      <Table label="Scores of all evaluators" head={heads.map((name, at) => <th key={name} scope="col" class={at > 0 ? "number" : ""}>{name}</th>)} cards={false}>
        {evaluators.map((one) => (
          <tr key={one.evaluator} class={one.evaluator === chosen ? "row-peeked" : ""}>
            <th scope="row" class="cell-name">
              <button type="button" class="link-button" aria-pressed={one.evaluator === chosen} title="Show its statistics and rows" onClick={() => onChoose(one.evaluator)}>
                {one.evaluator}
              </button>
            </th>
            <td class="number">{rounded(one.metrics.find((metric) => metric.name === "score")?.mean)}</td>
            <td class="number">{passRate(one, one.scored)}</td>
            <td class="number">{count(one.scored)}</td>
            <td class={one.failed > 0 ? "number fail" : "number"}>{count(one.failed)}</td>
          </tr>
        ))}
      </Table>
    </details>
  );
}

function over(rows: number, statistics: EvaluatorStatistics): string {
  return rows < statistics.rows ? `over ${count(rows)} of ${count(statistics.rows)} rows` : "";
}

function passedNote(job: JobReport, statistics: EvaluatorStatistics): ComponentChildren {
  if (statistics.pass_rate === null && statistics.scored === 0) return "no row was scored";
  if (statistics.pass_rate === null) return <Link to={`/?${new URLSearchParams({ job: job.id, row: "0", label: statistics.evaluator, settings: "1" })}`}>Set a pass threshold…</Link>;
  const zero = job.config.failures === "zero" && statistics.failed > 0;
  const failed = zero ? `${count(statistics.failed)} failed, counted as not passed` : "";
  const under = !zero && (statistics.not_passed ?? 0) > 0 ? `${count(statistics.not_passed ?? 0)} not passed` : "";
  const interval = statistics.pass_interval === null ? "" : `95 % interval ${passInterval(statistics)}`;
  return [failed, under, over(statistics.judged, statistics), interval].filter(Boolean).join(", ");
}

function meanNote(statistics: EvaluatorStatistics, score: Aggregate | undefined, zero: boolean): string {
  if (score === undefined) return "";
  const rows = over(score.count, statistics);
  if (zero && statistics.failed > 0) return [`${count(statistics.failed)} failed, counted as 0`, rows].filter(Boolean).join(", ");
  const error = score.std_error ? `standard error ${rounded(score.std_error)}` : "";
  return [zero ? "failed rows count as 0" : rows, error].filter(Boolean).join(", ");
}

function Tile({ name, value, note, tone = "" }: { name: string; value: string; note: ComponentChildren; tone?: string }) {
  return (
    <li class="tile stack">
      <span class="small">{name}</span>
      <span class={`tile-value ${tone}`}>{value}</span>
      <span class="tile-note small">{note}</span>
    </li>
  );
}

function Distribution({ job, metrics, shown, zeros }: { job: JobReport; metrics: readonly Aggregate[]; shown: Aggregate; zeros: number }) {
  const bins = shown.histogram;
  const key = JSON.stringify(bins);
  const drawing = useMemo(() => ({ kind: "histogram" as const, bins, x: shown.name, y: "rows" }), [key, shown.name]);
  const choose = (
    <Select label="Metric" bare value={shown.name} options={metrics.map(({ name }) => ({ value: name, label: name }))} onValue={(value) => setQuery({ metric: value === "score" ? null : value })} />
  );
  const showBin = (index: number) => {
    const bin = bins[index];
    if (bin === undefined) return;
    const most = index < bins.length - 1 ? justBelow(bin.upper_bound) : bin.upper_bound; // only the last bin includes its upper bound
    setQuery({ min: String(bin.lower_bound), max: String(most), cursor: null, at: null });
  };
  const summary = `How ${shown.name} is distributed over ${count(shown.count)} rows: mean ${rounded(shown.mean)}, median ${rounded(shown.percentiles?.["p50"])}, from ${rounded(shown.min)} to ${rounded(shown.max)}`;
  return (
    <Panel title="Distribution" actions={metrics.length > 1 ? choose : undefined}>
      {bins.length === 0 ? (
        <p class="muted">No row has a value that is a finite number.</p>
      ) : (
        <Plot name={`${job.id}-${shown.name}`} summary={summary} drawing={drawing} header={["from", "to", "rows"]} rows={bins.map((bin) => [bin.lower_bound, bin.upper_bound, bin.count])} {...(shown.name === "score" ? { onRow: showBin } : {})}>
          {shown.name === "score" && (zeros > 0 ? `Click a bar to see its rows, without the ${counted(zeros, "failed row")} counted as 0.` : "Click a bar to see its rows.")}
        </Plot>
      )}
    </Panel>
  );
}

const MANY_METRICS = 8;
const PERCENTILE = "Percentile at position p(n + 1)/100 of the n sorted values, interpolated";

interface MetricColumn {
  name: string;
  cell: (one: Aggregate) => string;
  title?: string;
}

const percentileColumn = (name: string, key: string): MetricColumn => ({ name, cell: (one) => rounded(one.percentiles?.[key]), title: PERCENTILE });

const COLUMNS: readonly MetricColumn[] = [
  { name: "Count", cell: (one) => count(one.count) },
  { name: "Mean", cell: (one) => rounded(one.mean) },
  { name: "Standard error", cell: (one) => rounded(one.std_error), title: "How much the mean would typically differ with other rows of the same kind" },
  { name: "Standard deviation", cell: (one) => rounded(one.std_dev), title: "Standard deviation of the population: divided by n, not by n − 1" },
  { name: "Min", cell: (one) => rounded(one.min) },
  percentileColumn("p10", "p10"),
  percentileColumn("Median", "p50"),
  percentileColumn("p90", "p90"),
  percentileColumn("p99", "p99"),
  { name: "Max", cell: (one) => rounded(one.max) },
  { name: "Missing", cell: (one) => count(one.nan_count) },
];

/** Statistics of each metric, with a search by name if there are many. */
function Metrics({ metrics: all }: { metrics: readonly Aggregate[] }) {
  const [text, setText] = useState("");
  const metrics = all.filter(({ name }) => name.toLowerCase().includes(text.trim().toLowerCase()));
  const head = (
    <>
      <th scope="col">Metric</th>
      {COLUMNS.map(({ name, title }) => (
        <th key={name} scope="col" class="number" title={title}>
          {name}
        </th>
      ))}
    </>
  );
  const table = (
    <Table label="Metrics" head={head} class="metrics-table">
      {metrics.map((one) => (
        <tr key={one.name}>
          <th scope="row">{oneLine(one.name, 60)}</th>
          {COLUMNS.map(({ name, cell }) => (
            <td key={name} class="number">
              {cell(one)}
            </td>
          ))}
        </tr>
      ))}
    </Table>
  );
  if (all.length <= MANY_METRICS) return table;
  return (
    <Panel title={`Metrics: ${count(all.length)}`} actions={<Field label="Find a metric" bare type="search" placeholder="Find…" value={text} onValue={setText} />}>
      {table}
    </Panel>
  );
}

/** The rows that ran longest. */
function Slowest({ job, evaluator, stamp }: { job: JobReport; evaluator: string; stamp: string }) {
  const found = useLoaded((signal) => call<JobRowPage>("GET", `/v1/jobs/${job.id}/rows`, { signal, query: { evaluator, sort: "-run_ms", limit: 5, brief: true } }), [job.id, evaluator, stamp]);
  const rows = found.value?.rows ?? [];
  if (rows.length === 0) return null;
  const most = Math.max(1e-6, ...rows.map((row) => row.result.timing_ms.run));
  return (
    <Panel title="Slowest rows">
      <ol class="bars">
        {rows.map((row) => (
          <li key={row.index} class="bar-line">
            <Link to={`/jobs/${job.id}/rows/${row.index}`}>row {count(row.index)}</Link>
            <span class="bar-track" aria-hidden="true">
              <span class="bar-fill" style={{ width: `${(row.result.timing_ms.run / most) * 100}%` }} />
            </span>
            <span class="number nowrap">{milliseconds(row.result.timing_ms.run)}</span>
            <Verdict result={row.result} />
          </li>
        ))}
      </ol>
    </Panel>
  );
}
