import { useEffect, useState } from "preact/hooks";
import { call } from "../api/http";
import { Button } from "../components/button";
import { Empty } from "../components/empty";
import { ErrorNote } from "../components/error-note";
import { Spinner } from "../components/spinner";
import { Table } from "../components/table";
import { useLoaded } from "../components/use-loaded";
import { BuildProgress } from "../resources/build-progress";
import { BuildDialog } from "../resources/build-dialog";
import { bytes, counted, oneLine, seconds } from "../resources/format";
import { PageHead, StatusChip, When } from "../resources/parts";
import { setTitle } from "../resources/set-title";
import { Link, setQuery } from "../router";
import type { PageProps } from "../routes";
import type { EnvironmentReport } from "../api/types";

/** The package sets that this workspace requested, with the progress of builds. */
export default function EnvironmentsPage({ query }: PageProps) {
  const found = useLoaded((signal) => call<EnvironmentReport[]>("GET", "/v1/environments", { signal }), []);
  const [open, setOpen] = useState(query.has("new"));
  useEffect(() => setOpen(query.has("new")), [query]);
  return (
    <div class="page">
      <PageHead title="Packages">
        <Button kind="primary" onClick={() => setQuery({ new: "1" })}>
          Install packages
        </Button>
      </PageHead>
      {found.error !== null && <ErrorNote error={found.error} onRetry={found.reload} />}
      {found.value === null && found.loading && <Spinner label="Loading packages" />}
      {found.value?.length === 0 && (
        <Empty title="No packages have been installed yet">
          <p>The packages of an evaluator are installed when it first runs. Install them now, and the first run does not have to wait.</p>
        </Empty>
      )}
      {found.value !== null && found.value.length > 0 && <Environments reports={found.value} onEnd={found.reload} />}
      {open && <BuildDialog onClose={() => setQuery({ new: null })} onAsked={found.reload} />}
    </div>
  );
}

function Environments({ reports, onEnd }: { reports: readonly EnvironmentReport[]; onEnd: () => void }) {
  const head = (
    <>
      <th scope="col">Packages</th>
      <th scope="col">Status</th>
      <th scope="col">Runtime</th>
      <th scope="col" class="number">Total</th>
      <th scope="col" class="number">Size</th>
      <th scope="col" class="number">Build time</th>
      <th scope="col">Built</th>
    </>
  );
  return (
    <Table label="Package sets" head={head}>
      {reports.map((one) => (
        <tr key={one.key}>
          <th scope="row" class="cell-name cell-wide">
            <Link to={`/environments/${encodeURIComponent(one.key)}`}>{setTitle(one)}</Link>
          </th>
          <td class="cell-status">
            <StatusChip status={one.status} />
            {one.status === "building" && <BuildProgress name={one.key} onEnd={onEnd} />}
            {one.error !== null && <p class="cell-error">{oneLine(one.error, 140)}</p>}
          </td>
          <td class="nowrap">{one.runtime}</td>
          <td class="number nowrap">{one.status === "ready" ? counted(one.packages.length, "package") : "–"}</td>
          <td class="number nowrap">{one.status === "ready" ? bytes(one.size_bytes) : "–"}</td>
          <td class="number nowrap">{one.build_s === null ? "–" : seconds(one.build_s)}</td>
          <td>
            <When at={one.built_at} />
          </td>
        </tr>
      ))}
    </Table>
  );
}
