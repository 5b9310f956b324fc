import { useState } from "preact/hooks";
import { call, download } from "../api/http";
import { routeOf } from "../api/dataset-rows";
import { Button } from "../components/button";
import { ErrorNote } from "../components/error-note";
import { Spinner } from "../components/spinner";
import { toast } from "../components/toasts";
import { useLoaded } from "../components/use-loaded";
import { ColumnTable } from "../resources/column-facts";
import { Confirm } from "../resources/confirm";
import { DatasetRows } from "../resources/dataset-rows";
import { DatasetVersions } from "../resources/dataset-versions";
import { pickFiles } from "../resources/drop-zone";
import { bytes, count, counted, shortId } from "../resources/format";
import { NotThere } from "../resources/not-there";
import { Facts, PageHead, Segments, When } from "../resources/parts";
import { ReadingNotes } from "../resources/reading-notes";
import { ScoresOverTime } from "../resources/score-history";
import { UploadDialog } from "../resources/upload-dialog";
import type { DatasetReport } from "../api/types";
import { Link, navigate, setQuery } from "../router";
import type { PageProps } from "../routes";

type Tab = "rows" | "columns" | "scores" | "versions";

const TABS: readonly { value: Tab; label: string }[] = [
  { value: "rows", label: "Rows" },
  { value: "columns", label: "Columns" },
  { value: "scores", label: "Scores" },
  { value: "versions", label: "Versions" },
];

/** One data set, or an older version of it: facts, rows, statistics of the columns, versions. */
export default function DatasetPage({ params, query }: PageProps) {
  const name = params["name"] ?? "";
  const route = routeOf(name);
  const found = useLoaded((signal) => call<DatasetReport>("GET", route, { signal }), [name]);
  const [failed, setFailed] = useState<unknown>(null);
  const [file, setFile] = useState<File | null>(null);
  const report = found.value;
  const old = report !== null && report.name.includes("@");
  const base = old ? report.name.replace(/@\d+$/, "") : name;
  const tabs = old ? TABS.filter(({ value }) => value === "rows" || value === "columns") : TABS;
  const tab = tabs.find((one) => one.value === query.get("tab"))?.value ?? "rows";
  const remove = async (force = false) => {
    await call("DELETE", route, { query: { force } });
    toast(`${name} was deleted`);
    navigate("/datasets");
  };
  return (
    <div class="page">
      <PageHead title={name} up={old ? { to: `/datasets/${encodeURIComponent(base)}?tab=versions`, label: base } : { to: "/datasets", label: "Data sets" }} mark={report && <span class="chip">{counted(report.rows, "row")}</span>}>
        {report && (
          <>
            <Link to={`/jobs/new?dataset=${encodeURIComponent(name)}`} class="button button-primary">
              Start a job
            </Link>
            <Button onClick={() => void download(`${route}/file`, `${name}.jsonl`).catch(setFailed)}>Download</Button>
            {!old && <Button onClick={() => void pickFiles().then(([one]) => setFile(one ?? null))}>Upload a new version…</Button>}
            {!old && (
              <Confirm label="Delete" title={`Delete ${name}?`} onConfirm={() => remove()} onForce={() => remove(true)}>
                This also deletes its {counted(report.rows, "row")} and its older versions. Jobs that used them keep their rows.
              </Confirm>
            )}
          </>
        )}
      </PageHead>
      {failed !== null && <ErrorNote error={failed} />}
      {file !== null && <UploadDialog file={file} taken={[name]} replaced={name} onDone={found.reload} onClose={() => setFile(null)} />}
      {found.error !== null && <NotThere error={found.error} onRetry={found.reload} list={{ to: "/datasets", label: "All data sets" }} at={(one) => `/datasets/${encodeURIComponent(one)}`} />}
      {report === null && found.loading && <Spinner label="Loading the data set" />}
      {report && (
        <>
          <Facts
            facts={[
              ["Version", count(report.version)],
              ["Columns", count(report.columns.length)],
              ["Size as JSON lines", bytes(report.size_bytes)],
              ["Format", report.format],
              [report.version === 1 ? "Uploaded" : "Changed", <When key="when" at={report.created_at} />],
              ["Digest", <code key="digest">{shortId(report.digest)}</code>],
            ]}
          />
          {old && <p class="note note-info">This is an older version: you can read, score and restore it, but not change it.</p>}
          <ReadingNotes report={report} />
          <Segments label="What to show" value={tab} options={tabs} onValue={(value) => setQuery({ tab: value === "rows" ? null : value, row: null })} />
          {tab === "rows" && <DatasetRows report={report} query={query} old={old} onChanged={found.reload} />}
          {tab === "columns" && <ColumnTable report={report} />}
          {tab === "scores" && <ScoresOverTime dataset={name} query={query} />}
          {tab === "versions" && <DatasetVersions name={name} query={query} onRestored={found.reload} />}
        </>
      )}
    </div>
  );
}
