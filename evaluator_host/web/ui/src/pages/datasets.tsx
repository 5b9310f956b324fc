import { useState } from "preact/hooks";
import { call } from "../api/http";
import { Button } from "../components/button";
import { Empty } from "../components/empty";
import { ErrorNote } from "../components/error-note";
import { Spinner } from "../components/spinner";
import { Table } from "../components/table";
import { useLoaded } from "../components/use-loaded";
import { DropZone, pickFiles } from "../resources/drop-zone";
import { bytes, count, counted, oneLine } from "../resources/format";
import { PageHead, When } from "../resources/parts";
import { SampleButton } from "../resources/sample-button";
import type { DatasetReport } from "../api/types";
import { UploadDialog } from "../resources/upload-dialog";
import { Link } from "../router";
import type { PageProps } from "../routes";

/** The list of data sets; a file that is dropped anywhere on the page is uploaded. */
export default function DatasetsPage(_: PageProps) {
  const found = useLoaded((signal) => call<DatasetReport[]>("GET", "/v1/datasets", { signal }), []);
  const [files, setFiles] = useState<readonly File[]>([]);
  const take = (given: readonly File[]) => setFiles((before) => [...before, ...given]);
  const file = files[0];
  return (
    <DropZone onFiles={take}>
      <div class="page">
        <PageHead title="Data sets">
          <Button kind="primary" onClick={() => void pickFiles().then(take)}>
            Upload a file
          </Button>
        </PageHead>
        {found.error !== null && <ErrorNote error={found.error} onRetry={found.reload} />}
        {found.value === null && found.loading && <Spinner label="Loading data sets" />}
        {found.value?.length === 0 && (
          <Empty title="Drop a file here">
            <p>Excel, CSV, TSV, JSONL, a JSON array or Parquet, with one row per test case. The file is stored, and jobs score its rows.</p>
            <Button onClick={() => void pickFiles().then(take)}>Choose a file</Button>
            <SampleButton />
          </Empty>
        )}
        {found.value !== null && found.value.length > 0 && (
          <>
            <Datasets datasets={found.value} />
            <p class="muted">Drop a file anywhere on this page to upload it.</p>
          </>
        )}
        {file && (
          <UploadDialog
            key={`${file.name}-${files.length}`}
            file={file}
            taken={(found.value ?? []).map((one) => one.name)}
            onDone={() => found.reload()}
            onClose={() => setFiles(files.slice(1))}
          />
        )}
      </div>
    </DropZone>
  );
}

function Datasets({ datasets }: { datasets: readonly DatasetReport[] }) {
  const head = (
    <>
      <th scope="col">Name</th>
      <th scope="col" class="number">Rows</th>
      <th scope="col">Columns</th>
      <th scope="col" class="number" title="Size of the rows as JSON lines, as they are stored">Size</th>
      <th scope="col">Format</th>
      <th scope="col">Uploaded</th>
    </>
  );
  return (
    <Table label="Data sets" head={head}>
      {datasets.map((one) => (
        <tr key={one.id}>
          <th scope="row" class="cell-name">
            <Link to={`/datasets/${encodeURIComponent(one.name)}`}>{one.name}</Link>
            {one.bad_row_count > 0 && <span class="chip chip-warn">{counted(one.bad_row_count, "bad line")}</span>}
          </th>
          <td class="number">{count(one.rows)}</td>
          <td class="cell-text">{oneLine(one.columns.join(", "), 100)}</td>
          <td class="number nowrap">{bytes(one.size_bytes)}</td>
          <td>{one.format}</td>
          <td>
            <When at={one.created_at} />
          </td>
        </tr>
      ))}
    </Table>
  );
}
