import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, isAbort, upload } from "../api/http";
import { Button } from "../components/button";
import { Dialog } from "../components/dialog";
import { ErrorNote } from "../components/error-note";
import { Field, Select } from "../components/field";
import { Link } from "../router";
import { bytes, counted } from "./format";
import { ReadingNotes } from "./reading-notes";
import type { DatasetReport } from "../api/types";

const FORMATS: Record<string, string> = {
  jsonl: "application/x-ndjson",
  ndjson: "application/x-ndjson",
  csv: "text/csv",
  tsv: "text/tab-separated-values",
  json: "application/json",
  parquet: "application/vnd.apache.parquet",
  xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
};
const OPTIONS = [
  { value: "jsonl", label: "JSONL: an object on every line" },
  { value: "csv", label: "CSV, with a header" },
  { value: "tsv", label: "TSV, with a header" },
  { value: "json", label: "JSON: an array of objects" },
  { value: "xlsx", label: "Excel: the first sheet, with a header" },
  { value: "parquet", label: "Parquet" },
];

interface UploadProps {
  file: File;
  /** Names of existing data sets. */
  taken: readonly string[];
  /** The data set that gets the file as its new version. */
  replaced?: string;
  onDone: (report: DatasetReport) => void;
  onClose: () => void;
}

/** Asks for the name and format of a file, uploads it, and reports the result. */
export function UploadDialog({ file, taken, replaced, onDone, onClose }: UploadProps) {
  const [name, setName] = useState(() => replaced ?? nameFor(file.name));
  const [format, setFormat] = useState(() => formatOf(file.name));
  const [share, setShare] = useState<number | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [report, setReport] = useState<DatasetReport | null>(null);
  const abort = useRef<AbortController | null>(null);
  useEffect(() => () => abort.current?.abort(), []);
  const replaces = taken.includes(name.trim());
  const send = async () => {
    abort.current = new AbortController();
    setError(null);
    setShare(0);
    try {
      const made = await upload<DatasetReport>("/v1/datasets", file, {
        contentType: FORMATS[format]!,
        query: { name: name.trim(), replace: replaces },
        signal: abort.current.signal,
        onSent: setShare,
      });
      setReport(made);
      onDone(made);
    } catch (problem) {
      if (!isAbort(problem)) setError(problem);
    }
    setShare(null);
  };
  if (report !== null) return <Uploaded report={report} onClose={onClose} />;
  const sending = share !== null;
  return (
    <Dialog
      title={replaced === undefined ? "Upload a data set" : `Upload a new version of ${replaced}`}
      onClose={onClose}
      onSubmit={() => !sending && name.trim() !== "" && void send()}
      actions={
        <>
          <Button onClick={onClose}>{sending ? "Stop" : "Cancel"}</Button>
          <Button kind={replaces && replaced === undefined ? "danger" : "primary"} type="submit" busy={sending} disabled={name.trim() === ""}>
            {replaces && replaced === undefined ? "Replace" : "Upload"}
          </Button>
        </>
      }
    >
      <p class="wrap">
        {file.name}, a file of {bytes(file.size)}
      </p>
      {replaced !== undefined && <p class="muted">The current version stays in the list of versions of {replaced}; existing jobs keep their rows.</p>}
      {replaced === undefined && <Field label="Name" value={name} onValue={setName} hint={replaces ? "A data set with this name exists. The upload replaces it; existing jobs keep their rows." : "Use letters, digits, dots, dashes and underscores."} disabled={sending} />}
      <Select label="Format" value={format} onValue={setFormat} options={OPTIONS} disabled={sending} />
      {sending && <Sending share={share} />}
      {error !== null && <ErrorNote title={error instanceof ApiError && error.status === 422 ? "The file was rejected" : "The upload failed"} error={error} />}
    </Dialog>
  );
}

function Sending({ share }: { share: number }) {
  const whole = Math.round(share * 100);
  return (
    <div>
      <div class="progress" role="progressbar" aria-label="Upload" aria-valuenow={whole} aria-valuemin={0} aria-valuemax={100}>
        <div class="progress-bar" style={{ width: `${whole}%` }} />
      </div>
      <p class="muted">{share < 1 ? `${whole} % sent` : "Reading the rows…"}</p>
    </div>
  );
}

function Uploaded({ report, onClose }: { report: DatasetReport; onClose: () => void }) {
  const place = `/datasets/${encodeURIComponent(report.name)}`;
  return (
    <Dialog
      title={`${report.name} is uploaded`}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Close</Button>
          <Link to={place} class="button button-plain">
            View its rows
          </Link>
          <Link to={`/?dataset=${encodeURIComponent(report.name)}&row=0&write=1`} class="button button-primary">
            Write an evaluator for it
          </Link>
        </>
      }
    >
      <p role="status">
        {counted(report.rows, "row")} with {counted(report.columns.length, "column")}: {report.columns.join(", ")}
      </p>
      <ReadingNotes report={report} />
    </Dialog>
  );
}

/** Returns a valid data set name made from the file's name. */
function nameFor(file: string): string {
  const stem = file.replace(/\.[^.]*$/, "").replaceAll("ß", "ss").normalize("NFKD").replaceAll(/\p{M}/gu, ""); // `ü` becomes `u`
  return stem.replaceAll(/[^A-Za-z0-9._-]+/g, "-").replaceAll(/^[^A-Za-z0-9]+|-+$/g, "").slice(0, 63);
}

function formatOf(file: string): string {
  const suffix = file.split(".").at(-1)?.toLowerCase() ?? "";
  return suffix === "ndjson" ? "jsonl" : suffix in FORMATS ? suffix : "jsonl";
}
