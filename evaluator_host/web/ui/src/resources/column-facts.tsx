/** Statistics of the columns of a data set: kinds, missing and frequent values, ranges. */
import { call } from "../api/http";
import { routeOf } from "../api/dataset-rows";
import { ErrorNote } from "../components/error-note";
import { Spinner } from "../components/spinner";
import { Table } from "../components/table";
import { useLoaded } from "../components/use-loaded";
import { setQuery } from "../router";
import { count, counted, rounded, NOTHING, oneLine, percent } from "./format";
import type { ColumnFacts, DatasetReport } from "../api/types";

export function ColumnTable({ report }: { report: DatasetReport }) {
  const found = useLoaded((signal) => call<ColumnFacts[]>("GET", `${routeOf(report.name)}/columns`, { signal }), [report.id]);
  if (found.error !== null) return <ErrorNote error={found.error} onRetry={found.reload} />;
  if (found.value === null) return <Spinner label="Counting the columns" />;
  const head = (
    <>
      <th scope="col">Column</th>
      <th scope="col">Holds</th>
      <th scope="col" class="number" title="Rows without a value, or with null">Missing</th>
      <th scope="col" class="number" title="Rows with empty text, such as empty cells of a CSV file">Empty</th>
      <th scope="col" class="number">Different</th>
      <th scope="col">Range</th>
      <th scope="col" title="Among the first 10,000 different values of the column">Most frequent</th>
    </>
  );
  const lacking = report.columns.length - found.value.length;
  return (
    <>
      <Table label={`Columns of ${report.name}`} head={head}>
        {found.value.map((one) => (
          <tr key={one.name}>
            <th scope="row" class="cell-name wrap">
              {one.name}
            </th>
            <td>{kindsOf(one)}</td>
            <td class="number nowrap">{shareOf(one.missing, report.rows)}</td>
            <td class="number nowrap">{shareOf(one.empty, report.rows)}</td>
            <td class="number nowrap">{one.distinct === null ? "over 10,000" : count(one.distinct)}</td>
            <td class="nowrap">{rangeOf(one)}</td>
            <td class="cell-text">
              <Frequent column={one} rows={report.rows} />
            </td>
          </tr>
        ))}
      </Table>
      {lacking > 0 && <p class="muted">{`These are the first ${count(found.value.length)} of ${count(report.columns.length)} columns.`}</p>}
    </>
  );
}

function shareOf(some: number, rows: number): string {
  return some === 0 ? "0" : `${count(some)} (${percent(some / rows)})`;
}

function kindsOf({ kinds }: ColumnFacts): string {
  const found = Object.entries(kinds).filter(([kind]) => kind !== "null").sort(([, one], [, other]) => other - one);
  return found.length === 1 ? found[0]![0] : found.map(([kind, rows]) => `${kind} ${count(rows)}`).join(", ") || NOTHING;
}

function rangeOf(one: ColumnFacts): string {
  if (one.min !== null) return `${rounded(one.min)} to ${rounded(one.max)}, mean ${rounded(one.mean)}`;
  if (one.max_length === null) return NOTHING;
  return one.min_length === one.max_length ? counted(one.max_length, "character") : `${count(one.min_length ?? 0)} to ${counted(one.max_length, "character")}`;
}

/** Frequent values, with their share as a bar, each with a link to its rows if rows can be searched by the value. */
function Frequent({ column, rows }: { column: ColumnFacts; rows: number }) {
  const often = column.top.filter((one) => one.count > 1 || column.distinct === 1);
  if (often.length === 0) return <span class="muted">every value occurs once</span>;
  return (
    <ul class="frequent">
      {often.map(({ value, count: times }) => (
        <li key={value}>
          <span class="score-track" aria-hidden="true">
            <span class="score-bar" style={{ width: `${(100 * times) / rows}%` }} />
          </span>
          {value.length < 200 && !/[=!<>~\n]/.test(column.name) && !value.includes("\n") ? (
            <button type="button" class="link-button" aria-label={`Rows where ${column.name} is ${oneLine(value, 60)}`} onClick={() => setQuery({ tab: null, where: `${column.name}=${value}`, first: null })}>
              {oneLine(value, 60) || "empty text"}
            </button>
          ) : (
            <span>{oneLine(value, 60)}</span>
          )}
          <span class="muted">{count(times)}</span>
        </li>
      ))}
    </ul>
  );
}
