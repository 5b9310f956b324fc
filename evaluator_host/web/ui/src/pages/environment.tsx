import { call, saveAs } from "../api/http";
import { Button } from "../components/button";
import { CopyButton } from "../components/copy-button";
import { ErrorNote } from "../components/error-note";
import { Spinner } from "../components/spinner";
import { Table } from "../components/table";
import { toast } from "../components/toasts";
import { useLoaded } from "../components/use-loaded";
import { BuildProgress } from "../resources/build-progress";
import { Confirm } from "../resources/confirm";
import { bytes, counted, milliseconds, seconds, shortId } from "../resources/format";
import { NotThere } from "../resources/not-there";
import { Facts, PageHead, Panel, StatusChip, When } from "../resources/parts";
import { setTitle } from "../resources/set-title";
import { navigate } from "../router";
import type { PageProps } from "../routes";
import type { EnvironmentReport } from "../api/types";

/** One package set: its build, its packages, its lock. */
export default function EnvironmentPage({ params }: PageProps) {
  const name = params["key"] ?? "";
  const route = `/v1/environments/${encodeURIComponent(name)}`;
  const found = useLoaded((signal) => call<EnvironmentReport>("GET", route, { signal }), [name]);
  const report = found.value;
  const up = { to: "/environments", label: "Packages" };
  if (report === null) {
    return (
      <div class="page">
        <PageHead title="Packages" up={up} />
        {found.error === null ? <Spinner label="Loading the package set" /> : <NotThere error={found.error} onRetry={found.reload} list={{ to: "/environments", label: "All packages" }} />}
      </div>
    );
  }
  const remove = async () => {
    await call("DELETE", route);
    toast("The package set was deleted");
    navigate("/environments");
  };
  const again = async () => {
    const python = report.language === "python" ? report.runtime.replace("python ", "") : null;
    const pins = report.packages.filter((one) => one.requested).map(({ name: one, version }) => ({ name: one, version }));
    await call("POST", "/v1/environments", { body: { language: report.language, packages: pins, python } });
    found.reload();
  };
  return (
    <div class="page">
      <PageHead title={setTitle(report)} up={up} mark={<StatusChip status={report.status} />}>
        {report.status === "failed" && <Button onClick={() => void again().catch((error: unknown) => toast(String(error)))}>Try again</Button>}
        {report.status !== "building" && (
          <Confirm label="Delete" title="Delete this package set?" onConfirm={remove}>
            This deletes its files and its lock. If an evaluator pins these packages, the host installs them again when that evaluator next runs.
          </Confirm>
        )}
      </PageHead>
      {found.error !== null && <ErrorNote error={found.error} onRetry={found.reload} />}
      {report.status === "building" && (
        <Panel title="Build">
          <BuildProgress name={name} onEnd={found.reload} />
        </Panel>
      )}
      {report.error !== null && (
        <div class="note note-error build-error" role="alert">
          <p class="strong">The packages could not be installed</p>
          <pre class="pre-wrap" tabIndex={0} role="region" aria-label="Why the build failed">
            {report.error}
          </pre>
        </div>
      )}
      <Facts
        facts={[
          ["Runtime", report.runtime],
          report.status === "ready" && (["Size", bytes(report.size_bytes)] as const),
          report.build_s !== null && (["Build time", seconds(report.build_s)] as const),
          report.built_at !== null && (["Built", <When key="built" at={report.built_at} />] as const),
          ["Key", <code key="key">{shortId(report.key)}</code>],
          report.digest !== null && (["Digest", <code key="digest">{shortId(report.digest)}</code>] as const),
        ]}
      />
      {report.notes.map((note) => (
        <p key={note} class="note note-warn">
          {note}
        </p>
      ))}
      {report.packages.length > 0 && <Packages report={report} />}
      {report.lock !== null && <Lock report={report} lock={report.lock} />}
    </div>
  );
}

function Packages({ report }: { report: EnvironmentReport }) {
  const head = (
    <>
      <th scope="col">Package</th>
      <th scope="col">Version</th>
      <th scope="col">Why</th>
      <th scope="col" class="number">First import</th>
    </>
  );
  const ordered = [...report.packages].sort((one, other) => Number(other.requested) - Number(one.requested) || one.name.localeCompare(other.name));
  return (
    <Table label={`${counted(report.packages.length, "package")}`} head={head}>
      {ordered.map((one) => (
        <tr key={one.name}>
          <th scope="row" class="mono">{one.name}</th>
          <td class="mono">{one.version}</td>
          <td>{one.requested ? <span class="chip chip-accent">pinned</span> : <span class="muted">dependency</span>}</td>
          <td class="number">{milliseconds(report.import_ms[one.name] ?? report.import_ms[one.name.replaceAll("-", "_")])}</td>
        </tr>
      ))}
    </Table>
  );
}

function Lock({ report, lock }: { report: EnvironmentReport; lock: string }) {
  const file = report.language === "python" ? "requirements.lock" : "package-lock.json";
  const actions = (
    <>
      <CopyButton label="Copy" text={() => lock} said="Lock copied" />
      <Button kind="quiet" small onClick={() => saveAs(new Blob([lock], { type: "text/plain" }), file)}>
        Save {file}
      </Button>
    </>
  );
  return (
    <Panel title="Lock" actions={actions}>
      <pre class="value-text value-tall" tabIndex={0} role="group" aria-label="Lock">
        {lock}
      </pre>
    </Panel>
  );
}
