import { useMemo } from "preact/hooks";
import { ApiError, call } from "../api/http";
import { Button } from "../components/button";
import { ErrorNote } from "../components/error-note";
import { Prose } from "../components/prose";
import { Select } from "../components/field";
import { Spinner } from "../components/spinner";
import { Table } from "../components/table";
import { useLoaded } from "../components/use-loaded";
import { DifferenceByColumn, Differences, tone } from "../resources/differences";
import { count, counted, oneLine, rounded, percent, points, shortId, signed } from "../resources/format";
import { FindRows, useFoundRows } from "../resources/found-rows";
import { JobLink } from "../resources/job-link";
import { WarningCounts } from "../resources/job-warnings";
import { significance } from "../resources/significance";
import { PageHead, Panel, Segments } from "../resources/parts";
import { Plot } from "../resources/plot";
import { ChangedRows, RowsCompared, type Side } from "../resources/rows-compared";
import type { Comparison, JobReport, Pairs } from "../api/types";
import { Link, navigate, setQuery } from "../router";
import type { PageProps } from "../routes";

interface Ids {
  before: string;
  after: string;
}

/** Compares two jobs that scored the same rows. */
export default function ComparePage({ params, query }: PageProps) {
  const ids = { before: params["before"] ?? "", after: params["after"] ?? "" };
  const route = `/v1/jobs/${encodeURIComponent(ids.before)}/compare/${encodeURIComponent(ids.after)}`;
  const byPlace = query.get("by_place") === "true";
  const found = useLoaded((signal) => call<Comparison[]>("GET", route, { signal, query: byPlace ? { by_place: true } : {} }), [ids.before, ids.after, byPlace]);
  const jobs = useLoaded((signal) => Promise.all([ids.before, ids.after].map((id) => call<JobReport>("GET", `/v1/jobs/${encodeURIComponent(id)}`, { signal }))), [ids.before, ids.after]);
  const [before, after] = jobs.value ?? [];
  const comparisons = found.value ?? [];
  const at = Math.max(0, comparisons.findIndex(({ after }) => after === query.get("evaluator")));
  const shown = comparisons[at];
  const sides = shown && before && after ? sidesOf(before, after, shown) : null;
  return (
    <div class="page">
      <PageHead title="Comparison" up={{ to: "/jobs", label: "Jobs" }}>
        <Link to={`/compare/${ids.after}/${ids.before}`} class="button button-plain">
          Swap
        </Link>
      </PageHead>
      <p>
        Before: <JobLink id={ids.before} job={before} /> <code class="muted">{shortId(ids.before)}</code>. After: <JobLink id={ids.after} job={after} /> <code class="muted">{shortId(ids.after)}</code>.
      </p>
      {found.error !== null && <ErrorNote title="These jobs cannot be compared" error={found.error} onRetry={found.reload} />}
      {found.error instanceof ApiError && found.error.problems.some(({ field }) => field === "by_place") && (
        <p>
          <Button onClick={() => setQuery({ by_place: "true" })}>Compare evaluators of different names</Button>
        </p>
      )}
      {jobs.error !== null && found.error === null && <ErrorNote error={jobs.error} onRetry={jobs.reload} />}
      {(found.loading || jobs.loading) && sides === null && <Spinner label="Comparing" />}
      {comparisons.length > 1 && (
        <Segments label="Evaluator" value={String(at)} options={comparisons.map((one, index) => ({ value: String(index), label: one.before === one.after ? one.before : `${one.before} → ${one.after}` }))} onValue={(value) => setQuery({ evaluator: comparisons[Number(value)]?.after ?? null, metric: null })} />
      )}
      {shown && sides && <Shown key={at} ids={ids} route={route} comparison={shown} sides={sides} query={query} />}
      {shown && sides && query.has("row") && <RowsCompared sides={sides} row={Number(query.get("row"))} rows={[...new Set([...shown.regressions.map((one) => one.row), ...shown.passes_lost_rows, ...shown.improvements.map((one) => one.row)])]} />}
    </div>
  );
}

function sidesOf(before: JobReport, after: JobReport, comparison: Comparison): [Side, Side] {
  const named = (job: JobReport) => oneLine(job.title, 80) + (before.title === after.title ? ` (${shortId(job.id)})` : "");
  return [
    { job: before, label: `Before: ${named(before)}`, evaluator: comparison.before },
    { job: after, label: `After: ${named(after)}`, evaluator: comparison.after },
  ];
}

function Shown({ ids, route, comparison, sides, query }: { ids: Ids; route: string; comparison: Comparison; sides: readonly [Side, Side]; query: URLSearchParams }) {
  const found = useFoundRows(ids.after, comparison.after, query);
  const search = { only: found.value?.rows ?? null, searching: found.loading || found.error !== null };
  const metric = query.get("metric");
  const names = comparison.metrics.map((one) => one.metric);
  const byPlace = String(query.get("by_place") === "true");
  const every = (better: boolean) => `${route}/changes?${new URLSearchParams({ evaluator: comparison.before, better: String(better), limit: "10000", by_place: byPlace })}`;
  const passes = comparison.pass_difference;
  const chosen = names.includes(metric ?? "") ? metric! : names.includes("score") ? "score" : (names[0] ?? "score");
  return (
    <>
      <CompareWarnings ids={ids} comparison={comparison} />
      {comparison.doubt !== null && <p class="note note-warn"><Prose text={comparison.doubt} /></p>}
      {comparison.only_before + comparison.only_after > 0 && <p class="note note-warn">{leftOut(comparison)}</p>}
      <WhatDiffers changed={comparison.changed} />
      <ul class="tiles">
        {comparison.metrics.filter((one) => one.metric === chosen).map((one) => (
          <li key={one.metric} class="tile stack">
            <span class="small">Mean {one.metric}</span>
            <span class={`tile-value ${tone(one)}`}>{signed(one.difference)}</span>
            <span class="tile-note small">
              {`${rounded(one.before)} → ${rounded(one.after)}`}
              {one.interval !== null && `, 95 % interval ${signed(one.interval[0])} to ${signed(one.interval[1])}`}
              {one.note !== null && `, ${one.note} for an interval`}
            </span>
            {one.note === null && <span class="tile-note small">{significance(one)}</span>}
          </li>
        ))}
        {comparison.pass_rate_before !== null && comparison.pass_rate_after !== null && (
          <li class="tile stack">
            <span class="small">Passed</span>
            <span class="tile-value">{points(comparison.pass_rate_after - comparison.pass_rate_before)}</span>
            <span class="tile-note small">
              {`${percent(comparison.pass_rate_before)} → ${percent(comparison.pass_rate_after)}`}
              {passes?.interval && `, 95 % interval ${points(passes.interval[0])} to ${points(passes.interval[1])}`}
              {passes?.note && `, ${passes.note} for an interval`}
            </span>
            {passes?.note === null && <span class="tile-note small">{significance(passes)}</span>}
            <span class="tile-note small">{`of ${counted(comparison.judged, "row")} with a verdict in both`}</span>
            {comparison.passes_lost > 0 && <span class="tile-note small">{`${count(comparison.passes_lost)} passed only before, ${count(comparison.passes_gained)} only after`}</span>}
          </li>
        )}
        <li class="tile stack">
          <span class="small">Better</span>
          <span class={comparison.improved > comparison.gained ? "tile-value pass" : "tile-value"}>{count(comparison.improved)}</span>
          <span class="tile-note small">rows by score{comparison.gained > 0 && `, ${count(comparison.gained)} of them failed before`}</span>
        </li>
        <li class="tile stack">
          <span class="small">Worse</span>
          <span class={comparison.regressed > 0 ? "tile-value fail" : "tile-value"}>{count(comparison.regressed)}</span>
          <span class="tile-note small">rows by score{comparison.lost > 0 && `, ${count(comparison.lost)} of them fail now`}</span>
        </li>
        {comparison.unscored > 0 && (
          <li class="tile stack">
            <span class="small">No score</span>
            <span class="tile-value">{count(comparison.unscored)}</span>
            <span class="tile-note small">rows in one of the jobs</span>
          </li>
        )}
      </ul>
      {comparison.metrics.length > 0 && <Differences metrics={comparison.metrics} />}
      {comparison.metrics.length > 0 && <DifferenceByColumn job={sides[1].job} evaluators={comparison} route={route} metric={chosen} by={query.get("by")} byPlace={byPlace} />}
      <FindRows query={query} found={found} />
      <ChangedRows title="Worse" label="Rows that are worse" rows={comparison.regressions.map((one) => one.row)} all={comparison.regressed} every={every(false)} sides={sides} {...search} />
      {comparison.passes_lost_rows.length > 0 && (
        <ChangedRows title="Passed before but not now, although the score did not fall" label="Rows that lost their pass" rows={comparison.passes_lost_rows} sides={sides} note={orMore(comparison)} {...search} />
      )}
      <ChangedRows title="Better" label="Rows that are better" rows={comparison.improvements.map((one) => one.row)} all={comparison.improved} every={every(true)} sides={sides} note={failedBefore(comparison)} {...search} />
      <Scatter ids={ids} route={route} comparison={comparison} sides={sides} metric={chosen} names={names} byPlace={byPlace} />
    </>
  );
}

/** The rows that are not compared, because only one of the jobs has a result for them. */
function leftOut({ only_before, only_after }: Comparison): string {
  const rows = [
    only_before > 0 && `${counted(only_before, "row")} with a result only before`,
    only_after > 0 && `${counted(only_after, "row")} with a result only after`,
  ];
  return `Left out: ${rows.filter(Boolean).join(", ")}.`;
}

function orMore({ passes_lost, passes_lost_rows: rows }: Comparison): string {
  return rows.length === 100 && passes_lost > 100 ? " or more" : "";
}

/** Says how many of the better rows failed before. */
function failedBefore({ gained }: Comparison): string {
  return gained > 0 ? `, of which ${count(gained)} failed before` : "";
}

/** The warnings that make scores of either job doubtful. */
function CompareWarnings({ ids, comparison }: { ids: Ids; comparison: Comparison }) {
  const sides = [
    { name: "before", job: ids.before, evaluator: comparison.before, warnings: comparison.warnings_before.filter((one) => one.doubtful) },
    { name: "after", job: ids.after, evaluator: comparison.after, warnings: comparison.warnings_after.filter((one) => one.doubtful) },
  ].filter((one) => one.warnings.length > 0);
  if (sides.length === 0) return null;
  return (
    <section class="note note-warn job-warnings" aria-label="Warnings">
      {sides.map((one) => (
        <div key={one.name}>
          <p class="strong">Scores {one.name} are doubtful</p>
          <WarningCounts warnings={one.warnings} job={one.job} evaluator={one.evaluator} />
        </div>
      ))}
    </section>
  );
}

/** The differences in code, settings and data that may explain different results. */
function WhatDiffers({ changed }: { changed: Comparison["changed"] }) {
  if (changed.length === 0) return <p class="muted">Nothing differs between these jobs.</p>;
  return (
    <Table
      label="What differs"
      head={
        <>
          <th scope="col">What differs</th>
          <th scope="col">Before</th>
          <th scope="col">After</th>
        </>
      }
    >
      {changed.map((one) => (
        <tr key={`${one.what} ${one.before}`}>
          <th scope="row">{one.what}</th>
          <td>{one.before}</td>
          <td>{one.after}</td>
        </tr>
      ))}
    </Table>
  );
}

function Scatter({ ids, route, comparison, sides, metric, names, byPlace }: { ids: Ids; route: string; comparison: Comparison; sides: readonly [Side, Side]; metric: string; names: readonly string[]; byPlace: string }) {
  const found = useLoaded((signal) => call<Pairs>("GET", `${route}/pairs`, { signal, query: { evaluator: comparison.before, metric, by_place: byPlace } }), [route, comparison.before, metric, byPlace]);
  const pairs = found.value;
  const points = pairs?.points;
  const moved = comparison.metrics.find((one) => one.metric === metric);
  const drawing = useMemo(() => ({ kind: "scatter" as const, points: points ?? [], x: oneLine(sides[0].label, 60), y: oneLine(sides[1].label, 60) }), [points, sides[0].label, sides[1].label]);
  const choose = <Select label="Metric" bare value={metric} options={names.map((name) => ({ value: name, label: name }))} onValue={(value) => setQuery({ metric: value === "score" ? null : value })} />;
  const open = (index: number) => {
    const point = points?.[index];
    if (point) navigate(`/jobs/${ids.after}/rows/${point.row}`);
  };
  return (
    <Panel title={`${metric} of each row`} actions={names.length > 1 ? choose : undefined}>
      {found.error !== null && <ErrorNote error={found.error} onRetry={found.reload} />}
      {pairs === null && found.loading && <Spinner label="Pairing rows" />}
      {pairs !== null && pairs.n === 0 && <p class="muted">No row has a {metric} in both jobs.</p>}
      {pairs !== null && pairs.n > 0 && (
        <Plot
          name={`${shortId(ids.before)}-${shortId(ids.after)}-${metric}`}
          summary={`${metric} of ${count(pairs.n)} rows before and after: rose in ${count(moved?.better ?? 0)}, fell in ${count(moved?.worse ?? 0)}`}
          drawing={drawing}
          header={["before", "after", "rows", "first row"]}
          rows={pairs.points.map((point) => [point.before, point.after, point.count, point.row])}
          onRow={open}
        >
          Rows above the line have a higher value in the later job. {pairs.binned ? "Nearby points are merged. " : ""}Click a point to open its first row.
        </Plot>
      )}
    </Panel>
  );
}
