/** Mean and pass rate of a job for each value of a column. */
import { call } from "../api/http";
import { isObject } from "../json";
import { Button } from "../components/button";
import { ErrorNote } from "../components/error-note";
import { Spinner } from "../components/spinner";
import { Table } from "../components/table";
import { useLoaded } from "../components/use-loaded";
import { setQuery } from "../router";
import { count, rounded, oneLine, passInterval, passRate } from "./format";
import type { ColumnStatistics, Columns, GroupStatistics, JobReport, JobRow } from "../api/types";

const LONGEST = 200; // maximum number of characters of a value that gets its own statistics

/** A column to choose: its path, its name, and the name that is shown. */
export interface Grouping {
  value: string;
  name: string;
  label: string;
}

/** The columns of these rows that have short strings, numbers or bools; `inputs` returns the columns of a row that are shown. */
export function groupings(rows: readonly JobRow[], inputs: (row: JobRow) => Columns): Grouping[] {
  const found = new Map<string, { name: string; fits: boolean }>();
  for (const row of rows) {
    const columns = inputs(row);
    const within = columns === row.row["inputs"] ? "inputs." : "";
    for (const [name, value] of Object.entries(columns)) {
      const fits = (value === null || typeof value !== "object") && String(value).length <= LONGEST;
      found.set(within + name, { name, fits: fits && (found.get(within + name)?.fits ?? true) });
    }
  }
  return [...found].filter(([, { fits }]) => fits).map(([value, { name }]) => ({ value, name, label: oneLine(name, 40) }));
}

/** A table of a job's statistics for each value of a column; a click on a value shows its rows below the table. */
export function ColumnMeans({ job, evaluator, by, name, where, stamp }: { job: JobReport; evaluator: string; by: string; name: string; where: string | null; stamp: string }) {
  const load = async (signal: AbortSignal) => {
    const [statistics] = await call<ColumnStatistics[]>("GET", `/v1/jobs/${job.id}/groups`, { signal, query: { by, evaluator } });
    return { by, statistics: statistics! };
  };
  const found = useLoaded(load, [job.id, evaluator, by, stamp]);
  if (found.error !== null) return <ErrorNote error={found.error} onRetry={found.reload} />;
  if (found.value?.by !== by) return <Spinner label={`Counting the values of ${name}`} />;
  const { groups, others } = found.value.statistics;
  const all = others ? [...groups, others] : groups;
  const partial = all.some((one) => one.mean_rows < one.rows);
  const conditionFor = (one: GroupStatistics) => (one === others ? null : conditionOf(by, one, found.value!.statistics));
  const judged = all.some((one) => one.judged > 0);
  const [failed, skipped] = [all.some((one) => one.failed > 0), all.some((one) => one.skipped > 0)];
  const head = (
    <>
      <th scope="col">{oneLine(name, 40)}</th>
      <th scope="col" class="number">Rows</th>
      <th scope="col" class="number">Mean score</th>
      <th scope="col" class="number" title="How much the mean would typically differ with other rows of the same kind">Standard error</th>
      {partial && <th scope="col" class="number" title="Rows over which the mean is computed">Rows in the mean</th>}
      <th scope="col" class="number">Passed</th>
      {judged && <th scope="col" class="number" title="Of the pass rate">95 % interval</th>}
      {failed && <th scope="col" class="number">Failed</th>}
      {skipped && <th scope="col" class="number">Skipped</th>}
    </>
  );
  return (
    <div class="column-means">
      <Table label={`Mean score by ${name}`} head={head} cards={false}>
        {all.map((one, at) => (
          <tr key={at} class={where !== null && where === conditionFor(one) ? "row-peeked" : ""}>
            <th scope="row" class="cell-name wrap">
              {one === others ? <span class="muted">other values</span> : <GroupValue group={one} condition={conditionFor(one)} where={where} />}
            </th>
            <td class="number">{count(one.rows)}</td>
            <td class="number">{rounded(one.mean)}</td>
            <td class="number">{rounded(one.std_error)}</td>
            {partial && <td class="number">{count(one.mean_rows)}</td>}
            <td class="number nowrap">{passRate(one, one.mean_rows)}</td>
            {judged && <td class="number nowrap">{passInterval(one)}</td>}
            {failed && <td class={one.failed > 0 ? "number fail" : "number"}>{count(one.failed)}</td>}
            {skipped && <td class="number">{count(one.skipped)}</td>}
          </tr>
        ))}
      </Table>
      <Button kind="quiet" small onClick={() => setQuery({ by: null, ...(where !== null && { where: null, cursor: null, at: null }) })}>
        Close
      </Button>
    </div>
  );
}

/** A value of a column, as a table shows it. */
export function valueText(value: GroupStatistics["value"]): string {
  return value === null ? "no value" : oneLine(value, 60) || "empty text";
}

/** A value; a click shows its rows, if a condition can name the value. */
function GroupValue({ group, condition, where }: { group: GroupStatistics; condition: string | null; where: string | null }) {
  const text = valueText(group.value);
  if (condition === null) return <span class={group.value === null ? "muted" : ""}>{text}</span>;
  const chosen = condition === where;
  return (
    <button type="button" class="link-button" aria-pressed={chosen} title={chosen ? "Show all rows below" : "Show only these rows below"} onClick={() => setQuery({ where: chosen ? null : condition, cursor: null, at: null })}>
      {text}
    </button>
  );
}

/** The condition for a value, "topic=cities"; null if the condition would mean other rows than these. */
function conditionOf(by: string, { value }: GroupStatistics, { groups, others }: ColumnStatistics): string | null {
  if (Array.isArray(value) || isObject(value) || /[=!<>~]/.test(by)) return null;
  // "topic=" means the rows with an empty text and those without a value
  if (isEmpty(value)) return others === null && groups.filter((one) => isEmpty(one.value)).length === 1 ? `${by}=` : null;
  const text = textOf(value);
  // "topic=1" means the rows with 1, and with the texts "1", "1.0" and "01"
  const number = NUMBER.test(text) ? Number(text) : null;
  const alike = groups.filter((one) => textOf(one.value) === text || (number !== null && NUMBER.test(textOf(one.value)) && Number(textOf(one.value)) === number));
  const hidden = others !== null && number !== null;
  return text !== text.trim() || alike.length > 1 || hidden ? null : `${by}=${text}`;
}

const NUMBER = /^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$/;

function textOf(value: GroupStatistics["value"]): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function isEmpty(value: GroupStatistics["value"]): boolean {
  return value === null || value === "";
}
