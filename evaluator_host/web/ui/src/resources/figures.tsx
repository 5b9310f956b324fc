/** The figures of one evaluator in a job, as numbers and as a plot. */
import { useMemo, useState } from "preact/hooks";
import { call } from "../api/http";
import { Field, Select } from "../components/field";
import { Table } from "../components/table";
import { useLoaded } from "../components/use-loaded";
import { Link, setQuery } from "../router";
import { keep, recall } from "../storage";
import { count, figure, milliseconds, oneLine, passRate, percent } from "./format";
import { Panel, Verdict } from "./parts";
import { Plot } from "./plot";
import { ResultView } from "./result-view";
import { usageInWords } from "./usage";
import { type Aggregate, type EvaluatorFigures, type JobReport, type JobRowPage } from "../api/types";

interface FiguresProps {
  job: JobReport;
  figures: EvaluatorFigures;
  metric: string | null;
  /** A new value makes the figures load again. */
  stamp: string;
}

/** Figures below the rows: the score of all rows together, reasons of failures, the distribution. */
export function MoreFigures({ job, figures, metric, stamp }: FiguresProps) {
  return (
    <>
      {figures.together && (
        <Panel title="All rows combined">
          <ResultView result={figures.together} />
        </Panel>
      )}
      <Details job={job} figures={figures} metric={metric} stamp={stamp} />
    </>
  );
}

/** The most important figures. */
export function Headline({ job, figures }: Pick<FiguresProps, "job" | "figures">) {
  const score = figures.metrics.find((one) => one.name === "score");
  return (
    <ul class="tiles" aria-label={`Figures of ${figures.evaluator}`}>
      <Tile name="Mean score" value={figure(score?.mean)} tone={figures.failed > 0 ? "warn" : ""} note={meanNote(figures, score, job.config.failures === "zero")} />
      <Tile name="Passed" value={percent(figures.pass_rate)} tone={figures.failed > 0 && figures.pass_rate !== null ? "warn" : ""} note={passedNote(figures, job.config.failures === "zero")} />
      <Tile name="Scored" value={count(figures.scored)} note={figures.skipped > 0 ? `${count(figures.skipped)} skipped` : ""} />
      <Tile name="Failed" value={count(figures.failed)} tone={figures.failed > 0 ? "fail" : ""} note={figures.rows > 0 ? percent(figures.failed / figures.rows) : ""} />
      <Tile name="Run time, median" value={milliseconds(figures.run_ms?.p50)} note={figures.run_ms ? `p99 ${milliseconds(figures.run_ms.p99)}` : ""} />
      {figures.usage && <Tile name="Cost of models" value={figure(figures.usage.cost)} note={usageInWords({ ...figures.usage, cost: null }).replace(" · cost not known", "")} />}
    </ul>
  );
}

const OPEN = "job-plots";

/** Plot, slowest rows and metrics, open or closed as this browser remembers. */
function Details({ job, figures, metric, stamp }: FiguresProps) {
  const [open, setOpen] = useState(recall(OPEN) === "open" || metric !== null);
  const shown = figures.metrics.find((one) => one.name === metric) ?? figures.metrics.find((one) => one.name === "score") ?? figures.metrics[0];
  const toggle = (isOpen: boolean) => {
    setOpen(isOpen);
    keep(OPEN, isOpen ? "open" : null);
  };
  return (
    <details class="job-plots" open={open} onToggle={(event) => event.currentTarget.open !== open && toggle(event.currentTarget.open)}>
      <summary>Distribution, slowest rows{figures.metrics.length > 1 && `, ${count(figures.metrics.length)} metrics`}</summary>
      {open && (
        <>
          <div class="figure-columns">
            {shown && <Distribution job={job} metrics={figures.metrics} shown={shown} />}
            <Slowest job={job} evaluator={figures.evaluator} stamp={stamp} />
          </div>
          {figures.metrics.length > 1 && <Metrics metrics={figures.metrics} />}
        </>
      )}
    </details>
  );
}

/** The figures of every evaluator of a job; one is chosen by its name. */
export function EveryEvaluator({ evaluators, chosen, open, onChoose }: { evaluators: readonly EvaluatorFigures[]; chosen: string; open: boolean; onChoose: (evaluator: string) => void }) {
  const heads = ["Evaluator", "Mean score", "Passed", "Scored", "Failed"];
  return (
    <details class="plot-data" open={open}>
      <summary>Scores of {count(evaluators.length)} evaluators</summary>
      <Table label="Scores of all evaluators" head={heads.map((name, at) => <th key={name} scope="col" class={at > 0 ? "number" : ""}>{name}</th>)} cards={false}>
        {evaluators.map((one) => (
          <tr key={one.evaluator} class={one.evaluator === chosen ? "row-peeked" : ""}>
            <th scope="row" class="cell-name">
              <button type="button" class="link-button" aria-pressed={one.evaluator === chosen} title="Show its figures and rows" onClick={() => onChoose(one.evaluator)}>
                {one.evaluator}
              </button>
            </th>
            <td class="number">{figure(one.metrics.find((metric) => metric.name === "score")?.mean)}</td>
            <td class="number">{passRate(one, one.scored)}</td>
            <td class="number">{count(one.scored)}</td>
            <td class={one.failed > 0 ? "number fail" : "number"}>{count(one.failed)}</td>
          </tr>
        ))}
      </Table>
    </details>
  );
}

function over(rows: number, figures: EvaluatorFigures): string {
  return rows < figures.rows ? `over ${count(rows)} of ${count(figures.rows)} rows` : "";
}

function passedNote(figures: EvaluatorFigures, zero: boolean): string {
  if (figures.pass_rate === null) return figures.scored === 0 ? "no row was scored" : "no threshold";
  const failed = zero && figures.failed > 0 ? `${count(figures.failed)} failed, counted as not passed` : "";
  return [failed, over(figures.judged, figures)].filter(Boolean).join(", ");
}

function meanNote(figures: EvaluatorFigures, score: Aggregate | undefined, zero: boolean): string {
  if (score === undefined) return "";
  const rows = over(score.count, figures);
  if (zero && figures.failed > 0) return [`${count(figures.failed)} failed, counted as 0`, rows].filter(Boolean).join(", ");
  const error = score.std_error ? `standard error ${figure(score.std_error)}` : "";
  return [zero ? "failed rows count as 0" : rows, error].filter(Boolean).join(", ");
}

function Tile({ name, value, note, tone = "" }: { name: string; value: string; note: string; tone?: string }) {
  return (
    <li class="tile stack">
      <span class="small">{name}</span>
      <span class={`tile-value ${tone}`}>{value}</span>
      <span class="tile-note small">{note}</span>
    </li>
  );
}

function Distribution({ job, metrics, shown }: { job: JobReport; metrics: readonly Aggregate[]; shown: Aggregate }) {
  const bins = shown.histogram;
  const key = JSON.stringify(bins);
  const drawing = useMemo(() => ({ kind: "histogram" as const, bins, x: shown.name, y: "rows" }), [key, shown.name]);
  const choose = (
    <Select label="Metric" bare value={shown.name} options={metrics.map(({ name }) => ({ value: name, label: name }))} onValue={(value) => setQuery({ metric: value === "score" ? null : value })} />
  );
  const showBin = (index: number) => {
    const bin = bins[index];
    if (bin !== undefined) setQuery({ min: String(bin.lower_bound), max: String(bin.upper_bound), cursor: null, at: null });
  };
  const summary = `How ${shown.name} is distributed over ${count(shown.count)} rows: mean ${figure(shown.mean)}, median ${figure(shown.percentiles?.["p50"])}, from ${figure(shown.min)} to ${figure(shown.max)}`;
  return (
    <Panel title="Distribution" actions={metrics.length > 1 ? choose : undefined}>
      {bins.length === 0 ? (
        <p class="muted">No row has a value that is a finite number.</p>
      ) : (
        <Plot name={`${job.id}-${shown.name}`} summary={summary} drawing={drawing} header={["from", "to", "rows"]} rows={bins.map((bin) => [bin.lower_bound, bin.upper_bound, bin.count])} {...(shown.name === "score" ? { onRow: showBin } : {})}>
          {shown.name === "score" ? "Click a bar to see its rows." : ""}
        </Plot>
      )}
    </Panel>
  );
}

const MANY_METRICS = 8;
const PERCENTILE = "Percentile at place p(n + 1)/100 of the n sorted values, interpolated";

interface MetricColumn {
  name: string;
  cell: (one: Aggregate) => string;
  title?: string;
}

const percentileColumn = (name: string, key: string): MetricColumn => ({ name, cell: (one) => figure(one.percentiles?.[key]), title: PERCENTILE });

const COLUMNS: readonly MetricColumn[] = [
  { name: "Count", cell: (one) => count(one.count) },
  { name: "Mean", cell: (one) => figure(one.mean) },
  { name: "Std err", cell: (one) => figure(one.std_error), title: "Standard error of the mean: how far it would typically be off with other rows of the same kind" },
  { name: "Std dev", cell: (one) => figure(one.std_dev), title: "Standard deviation of the population: divided by n, not by n − 1" },
  { name: "Min", cell: (one) => figure(one.min) },
  percentileColumn("p10", "p10"),
  percentileColumn("Median", "p50"),
  percentileColumn("p90", "p90"),
  percentileColumn("p99", "p99"),
  { name: "Max", cell: (one) => figure(one.max) },
  { name: "Missing", cell: (one) => count(one.nan_count) },
];

/** Figures of each metric, with a search by name if there are many. */
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
