import { useState } from "preact/hooks";
import { call, download } from "../api/http";
import { Button } from "../components/button";
import { Dialog } from "../components/dialog";
import { ErrorNote } from "../components/error-note";
import { Spinner } from "../components/spinner";
import { Table } from "../components/table";
import { toast } from "../components/toasts";
import { useLoaded } from "../components/use-loaded";
import { BadLines } from "../resources/bad-lines";
import { Confirm } from "../resources/confirm";
import { bytes, count, counted, oneLine, shortId } from "../resources/format";
import { Facts, PageHead, When } from "../resources/parts";
import type { Columns, DatasetReport } from "../api/types";
import { Value } from "../resources/value";
import { Link, navigate, setQuery } from "../router";
import type { PageProps } from "../routes";

const PAGE = 50;
const COLUMNS_SHOWN = 12;

/** One data set: what it is, and its rows, a page at a time. */
export default function DatasetPage({ params, query }: PageProps) {
  const name = params["name"] ?? "";
  const route = `/v1/datasets/${encodeURIComponent(name)}`;
  const found = useLoaded((signal) => call<DatasetReport>("GET", route, { signal }), [name]);
  const [failed, setFailed] = useState<unknown>(null);
  const report = found.value;
  const remove = async () => {
    await call("DELETE", route);
    toast(`${name} was deleted`);
    navigate("/datasets");
  };
  return (
    <div class="page">
      <PageHead title={name} up={{ to: "/datasets", label: "Data sets" }} mark={report && <span class="chip">{counted(report.rows, "row")}</span>}>
        {report && (
          <>
            <Link to={`/jobs/new?dataset=${encodeURIComponent(name)}`} class="button button-primary">
              Start a job
            </Link>
            <Button onClick={() => void download(`${route}/file`, `${name}.jsonl`).catch(setFailed)}>Download</Button>
            <Confirm label="Delete" title={`Delete ${name}?`} onConfirm={remove}>
              Its {counted(report.rows, "row")} go. Jobs that used them keep theirs.
            </Confirm>
          </>
        )}
      </PageHead>
      {failed !== null && <ErrorNote error={failed} />}
      {found.error !== null && <ErrorNote error={found.error} onRetry={found.reload} />}
      {report === null && found.loading && <Spinner label="Loading the data set" />}
      {report && (
        <>
          <Facts
            facts={[
              ["Rows", count(report.rows)],
              ["Columns", count(report.columns.length)],
              ["Size", bytes(report.size_bytes)],
              ["Format", report.format],
              ["Uploaded", <When key="when" at={report.created_at} />],
              ["Digest", <code key="digest">{shortId(report.digest)}</code>],
            ]}
          />
          <BadLines report={report} />
          <Rows report={report} first={Math.max(0, Number(query.get("first")) || 0)} chosen={query.get("row")} />
        </>
      )}
    </div>
  );
}

function Rows({ report, first, chosen }: { report: DatasetReport; first: number; chosen: string | null }) {
  const route = `/v1/datasets/${encodeURIComponent(report.name)}/rows`;
  const found = useLoaded((signal) => call<Columns[]>("GET", route, { signal, query: { first, limit: PAGE } }), [report.id, first]);
  const columns = report.columns.slice(0, COLUMNS_SHOWN);
  const last = Math.min(first + PAGE, report.rows);
  const head = (
    <>
      <th scope="col" class="number">Row</th>
      {columns.map((column) => (
        <th key={column} scope="col">
          {oneLine(column, 40)}
        </th>
      ))}
      {report.columns.length > columns.length && <th scope="col">and {report.columns.length - columns.length} more</th>}
    </>
  );
  if (found.error !== null) return <ErrorNote error={found.error} onRetry={found.reload} />;
  if (found.value === null) return <Spinner label="Loading rows" />;
  const rows = found.value;
  const index = chosen === null ? null : Number(chosen);
  return (
    <>
      <Table label={`Rows of ${report.name}`} head={head}>
        {rows.map((row, at) => (
          <tr key={first + at}>
            <th scope="row" class="number">
              <button type="button" class="link-button" aria-label={`Row ${first + at}`} onClick={() => setQuery({ row: String(first + at) })}>
                {first + at}
              </button>
            </th>
            {columns.map((column) => (
              <td key={column} class="cell-value">
                <span class="clamped">{oneLine(row[column], 120)}</span>
              </td>
            ))}
            {report.columns.length > columns.length && <td class="muted">…</td>}
          </tr>
        ))}
      </Table>
      <nav class="pager" aria-label="Pages of rows">
        <Button small disabled={first === 0} onClick={() => setQuery({ first: first <= PAGE ? null : String(first - PAGE) })}>
          ‹ Previous
        </Button>
        <span class="muted" role="status">
          {rows.length === 0 ? "no rows on this page" : `rows ${count(first)} to ${count(last - 1)} of ${count(report.rows)}`}
        </span>
        <Button small disabled={last >= report.rows} onClick={() => setQuery({ first: String(first + PAGE) })}>
          Next ›
        </Button>
      </nav>
      {index !== null && <RowDialog name={report.name} index={index} known={rows[index - first]} />}
    </>
  );
}

function RowDialog({ name, index, known }: { name: string; index: number; known: Columns | undefined }) {
  const route = `/v1/datasets/${encodeURIComponent(name)}/rows`;
  const found = useLoaded(async (signal) => known ?? (await call<Columns[]>("GET", route, { signal, query: { first: index, limit: 1 } }))[0] ?? null, [name, index]);
  const use = (
    <Link to={`/?dataset=${encodeURIComponent(name)}&row=${index}`} class="button button-primary">
      Use in the workbench
    </Link>
  );
  return (
    <Dialog title={`Row ${count(index)}`} wide onClose={() => setQuery({ row: null })} actions={use}>
      {found.error !== null && <ErrorNote error={found.error} />}
      {!found.loading && found.value === null && found.error === null && <p class="muted">This row does not exist.</p>}
      {found.value && Object.entries(found.value).map(([column, value]) => (
        <section key={column} class="named-value">
          <h3>{column}</h3>
          <Value label={column} value={value} empty="null" />
        </section>
      ))}
    </Dialog>
  );
}
