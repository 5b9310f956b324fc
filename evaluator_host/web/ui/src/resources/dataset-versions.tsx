/** The kept versions of a data set: read, compared row by row, restored. */
import { useState } from "preact/hooks";
import { call, send } from "../api/http";
import { routeOf } from "../api/dataset-rows";
import { Button } from "../components/button";
import { ErrorNote } from "../components/error-note";
import { Select } from "../components/field";
import { Spinner } from "../components/spinner";
import { Table } from "../components/table";
import { toast } from "../components/toasts";
import { useLoaded } from "../components/use-loaded";
import { own } from "../json";
import { Link, setQuery } from "../router";
import { bytes, count, counted, oneLine, ROW_HEADING } from "./format";
import { Panel, When } from "./parts";
import type { DatasetReport, RowChange, RowChanges } from "../api/types";

const STEP = 200;
const MOST_SHOWN = 1000;

interface Props {
  /** Name of the data set without a version. */
  name: string;
  query: URLSearchParams;
  onRestored: () => void;
}

export function DatasetVersions({ name, query, onRestored }: Props) {
  const found = useLoaded((signal) => call<DatasetReport[]>("GET", `${routeOf(name)}/versions`, { signal }), [name]);
  const [busy, setBusy] = useState<number | null>(null);
  if (found.error !== null) return <ErrorNote error={found.error} onRetry={found.reload} />;
  if (found.value === null) return <Spinner label="Loading versions" />;
  const versions = found.value;
  const newest = versions[0]!;
  const restore = async (version: DatasetReport) => {
    setBusy(version.version);
    try {
      const rows = await (await send("GET", `${routeOf(version.name)}/file`)).blob();
      const made = await call<DatasetReport>("POST", "/v1/datasets", { raw: rows, contentType: "application/x-ndjson", query: { name, replace: true } });
      toast(`Version ${version.version} is the newest again, as version ${made.version}`);
      found.reload();
      onRestored();
    } catch (fault) {
      toast(fault instanceof Error ? fault.message : String(fault));
    }
    setBusy(null);
  };
  const head = (
    <>
      <th scope="col">Version</th>
      <th scope="col" class="number">Rows</th>
      <th scope="col" class="number">Columns</th>
      <th scope="col" class="number" title="Size of the rows as JSON lines, as they are stored">Size</th>
      <th scope="col">Created</th>
      <th scope="col" aria-label="Actions" />
    </>
  );
  return (
    <>
      <Table label={`Versions of ${name}`} head={head}>
        {versions.map((one, at) => (
          <tr key={one.id}>
            <th scope="row" class="cell-name">
              <Link to={`/datasets/${encodeURIComponent(one.name)}`}>{`${name}@${one.version}`}</Link>
              {one === newest && <span class="chip chip-accent">newest</span>}
            </th>
            <td class="number">{count(one.rows)}</td>
            <td class="number">{count(one.columns.length)}</td>
            <td class="number nowrap">{bytes(one.size_bytes)}</td>
            <td>
              <When at={one.created_at} />
            </td>
            <td>
              <div class="page-actions line">
                {at + 1 < versions.length && (
                  <Button small onClick={() => setQuery({ from: String(versions[at + 1]!.version), to: String(one.version) })}>
                    {`Compare with ${versions[at + 1]!.version}`}
                  </Button>
                )}
                {one !== newest && (
                  <Button small busy={busy === one.version} disabled={busy !== null} onClick={() => void restore(one)}>
                    {`Restore as version ${newest.version + 1}`}
                  </Button>
                )}
              </div>
            </td>
          </tr>
        ))}
      </Table>
      <p class="muted">The host keeps the ten newest versions, and all versions that a job used.</p>
      {versions.length > 1 && <Compared versions={versions} from={query.get("from")} to={query.get("to")} />}
    </>
  );
}

function Compared({ versions, from, to }: { versions: readonly DatasetReport[]; from: string | null; to: string | null }) {
  const after = versions.find((one) => String(one.version) === to) ?? versions[0]!;
  const before = versions.find((one) => String(one.version) === from) ?? versions[1]!;
  const options = versions.map((one) => ({ value: String(one.version), label: `Version ${one.version}` }));
  return (
    <Panel title="Differences" class="panel-stack">
      <div class="record-bar line">
        <Select label="From" value={String(before.version)} options={options} onValue={(value) => setQuery({ from: value })} />
        <Select label="To" value={String(after.version)} options={options} onValue={(value) => setQuery({ to: value })} />
      </div>
      <Changes key={`${before.id} ${after.id}`} before={before} after={after} />
    </Panel>
  );
}

function Changes({ before, after }: { before: DatasetReport; after: DatasetReport }) {
  const [most, setMost] = useState(STEP);
  const found = useLoaded((signal) => call<RowChanges>("GET", `${routeOf(before.name)}/changes`, { signal, query: { to: after.name, limit: most } }), [most]);
  if (found.error !== null) return <ErrorNote error={found.error} onRetry={found.reload} />;
  if (found.value === null) return <Spinner label="Comparing the versions" />;
  const { rows, changed, added, removed } = found.value;
  const left = changed + added + removed - rows.length;
  const head = (
    <>
      <th scope="col">Change</th>
      <th scope="col" class="number">{ROW_HEADING}</th>
      <th scope="col">What changed</th>
    </>
  );
  return (
    <>
      <p role="status">{changed + added + removed === 0 ? "The rows are the same." : `${counted(changed, "row")} changed, ${count(added)} added, ${count(removed)} removed.`}</p>
      {rows.length > 0 && (
        <Table label="Changed rows" head={head}>
          {rows.map((one) => (
            <tr key={`${one.kind} ${one.index}`}>
              <td>
                <span class={`chip ${CHIPS[one.kind] ?? ""}`}>{one.kind}</span>
              </td>
              <th scope="row" class="number">
                {count(one.index)}
              </th>
              <td class="cell-wide">
                {one.kind === "changed" ? <Cells change={one} /> : <span class="wrap">{oneLine(one.after ?? one.before, 300)}</span>}
              </td>
            </tr>
          ))}
        </Table>
      )}
      {left > 0 && most < MOST_SHOWN && (
        <div>
          <Button busy={found.loading} onClick={() => setMost(Math.min(MOST_SHOWN, most + STEP))}>
            {`Show more of ${counted(left, "change")}`}
          </Button>
        </div>
      )}
      {left > 0 && most >= MOST_SHOWN && <p class="muted">{`and ${count(left)} more changes`}</p>}
    </>
  );
}

const CHIPS: Record<string, string> = { added: "chip-pass", removed: "chip-fail", changed: "chip-info" };

function Cells({ change }: { change: RowChange }) {
  const before = change.before ?? {};
  const after = change.after ?? {};
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return (
    <ul class="setting-changes wrap stack-tight">
      {names.filter((name) => JSON.stringify(own(before, name)) !== JSON.stringify(own(after, name))).map((name) => (
        <li key={name}>
          {name}: <del>{shown(own(before, name))}</del> → <ins>{shown(own(after, name))}</ins>
        </li>
      ))}
    </ul>
  );
}

function shown(value: unknown): string {
  return value === undefined ? "no value" : oneLine(value, 300) || "empty text";
}
