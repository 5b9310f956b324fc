/** Tables of differences between two jobs: of each metric, and of one metric for each value of a column. */
import { useMemo } from "preact/hooks";
import { call } from "../api/http";
import { Select } from "../components/field";
import { ErrorNote } from "../components/error-note";
import { Prose } from "../components/prose";
import { Spinner } from "../components/spinner";
import { Table } from "../components/table";
import { useLoaded } from "../components/use-loaded";
import { setQuery } from "../router";
import { type Grouping, groupings, valueText } from "./column-means";
import { count, oneLine, rounded, signed } from "./format";
import { Panel } from "./parts";
import { inputsOf } from "./row-parts";
import { significance } from "./significance";
import type { ComparedColumn, Difference, JobReport, JobRowPage } from "../api/types";

const SAMPLE = 200; // rows in which columns with few values are sought
const MOST_VALUES = 50; // maximum number of values that the host compares on their own

const NUMBERS = ["Rows", "Before", "After", "Difference", "95 % interval", "Rose", "Fell"];

function head(first: string) {
  return (
    <>
      <th scope="col">{first}</th>
      {NUMBERS.map((name) => (
        <th key={name} scope="col" class="number">
          {name}
        </th>
      ))}
      <th scope="col">Significance</th>
    </>
  );
}

export function Differences({ metrics }: { metrics: readonly Difference[] }) {
  const scoreFirst = [...metrics].sort((one, other) => Number(other.metric === "score") - Number(one.metric === "score"));
  return (
    <Table label="Mean differences" head={head("Metric")}>
      {scoreFirst.map((one) => (
        <tr key={one.metric}>
          <th scope="row">{one.metric}</th>
          <Cells difference={one} />
        </tr>
      ))}
    </Table>
  );
}

/** `rows` are the rows of both jobs, of which some may lack the metric. */
function Cells({ difference: one, rows = one.n }: { difference: Difference; rows?: number }) {
  return (
    <>
      <td class="number nowrap">{rows === one.n ? count(one.n) : `${count(one.n)} of ${count(rows)}`}</td>
      <td class="number">{rounded(one.before)}</td>
      <td class="number">{rounded(one.after)}</td>
      <td class={`number ${tone(one)}`}>{signed(one.difference)}</td>
      <td class="number nowrap">{one.interval === null ? (one.note ?? "–") : `${signed(one.interval[0])} to ${signed(one.interval[1])}`}</td>
      <td class="number">{count(one.better)}</td>
      <td class="number">{count(one.worse)}</td>
      <td>{one.significant ? <span class="chip chip-accent">significant</span> : <span class="muted">{significance(one)}</span>}</td>
    </>
  );
}

/** The colour of a difference; none for metrics other than the score, where more may not be better. */
export function tone(one: Difference): string {
  if (one.metric !== "score" || !one.significant || one.difference === null) return "";
  return one.difference > 0 ? "pass" : "fail";
}

interface ByColumnProps {
  /** The later job. */
  job: JobReport;
  evaluators: { before: string; after: string };
  /** Route of the comparison. */
  route: string;
  metric: string;
  by: string | null;
  byPlace: string;
}

/** The difference for each value of a column with few values, such as a topic; nothing if there is no such column. */
export function DifferenceByColumn({ job, evaluators, route, metric, by, byPlace }: ByColumnProps) {
  const columns = useColumnsOfFewValues(job, evaluators.after);
  const offered = by === null || columns.some(({ value }) => value === by) ? columns : [...columns, { value: by, name: by, label: by }];
  if (offered.length === 0) return null;
  const choose = <Select label="Column" bare value={by ?? ""} options={[{ value: "", label: "Choose a column…" }, ...offered]} onValue={(value) => setQuery({ by: value || null })} />;
  return (
    <Panel title={`Difference of the ${metric} by column`} actions={choose}>
      {by === null ? <p class="muted">Choose a column to see for which of its values the two jobs differ.</p> : <ByValue route={route} query={{ evaluator: evaluators.before, metric, by, by_place: byPlace }} name={offered.find(({ value }) => value === by)!.label} />}
    </Panel>
  );
}

/** The columns in which a value occurs again among the first rows of a job. */
function useColumnsOfFewValues(job: JobReport, evaluator: string): readonly Grouping[] {
  const found = useLoaded((signal) => call<JobRowPage>("GET", `/v1/jobs/${job.id}/rows`, { signal, query: { evaluator, limit: SAMPLE, brief: true } }), [job.id, evaluator]);
  return useMemo(() => {
    const rows = found.value?.rows ?? [];
    return groupings(rows, (row) => inputsOf(job, row)).filter(({ name }) => {
      const values = new Set(rows.map((row) => JSON.stringify(inputsOf(job, row)[name])));
      return values.size > 1 && values.size < rows.length && values.size <= MOST_VALUES;
    });
  }, [job.id, found.value]);
}

function ByValue({ route, query, name }: { route: string; query: { evaluator: string; metric: string; by: string; by_place: string }; name: string }) {
  const load = async (signal: AbortSignal) => ({ of: query, column: (await call<ComparedColumn[]>("GET", `${route}/groups`, { signal, query }))[0]! });
  const found = useLoaded(load, [route, JSON.stringify(query)]);
  if (found.error !== null) return <ErrorNote error={found.error} onRetry={found.reload} />;
  if (found.value === null || found.loading) return <Spinner label={`Comparing the values of ${name}`} />;
  const { groups, others, note } = found.value.column;
  return (
    <>
      <Table label={`Difference by ${name}`} head={head(oneLine(name, 40))}>
        {groups.map((one, at) => (
          <tr key={at}>
            <th scope="row" class={one.value === null ? "cell-name wrap muted" : "cell-name wrap"}>
              {valueText(one.value)}
            </th>
            <Cells difference={one.difference} rows={one.rows} />
          </tr>
        ))}
        {others !== null && (
          <tr>
            <th scope="row" class="cell-name muted">
              other values
            </th>
            <Cells difference={others.difference} rows={others.rows} />
          </tr>
        )}
      </Table>
      {note !== null && <p class="muted"><Prose text={note} /></p>}
    </>
  );
}
