/** Downloads the rows of a job: all of them, or those that match the filters of the page. */
import { useState } from "preact/hooks";
import { download } from "../api/http";
import { Button } from "../components/button";
import { Dialog } from "../components/dialog";
import { ErrorNote } from "../components/error-note";
import { Select } from "../components/field";
import type { JobReport } from "../api/types";
import { filtersOf } from "./row-filters";

const FORMATS = [
  { value: "jsonl", label: "JSON Lines, with all details" },
  { value: "csv", label: "CSV" },
  { value: "parquet", label: "Parquet" },
];

export function DownloadDialog({ job, query, onClose }: { job: JobReport; query: URLSearchParams; onClose: () => void }) {
  const chosen = query.get("evaluator") ?? "";
  const evaluator = job.evaluators.includes(chosen) ? chosen : job.evaluators[0]!;
  const filters = filtersOf(job, query, evaluator);
  const isNarrowed = Object.entries(filters).some(([name, value]) => name !== "evaluator" && value !== null);
  const [format, setFormat] = useState("csv");
  const [rows, setRows] = useState(isNarrowed ? "matching" : "all");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const save = async () => {
    setBusy(true);
    setError(null);
    try {
      await download(`/v1/jobs/${job.id}/rows.${format}`, `${job.id}.${format}`, rows === "all" ? {} : rows === "one" ? { evaluator } : filters);
      onClose();
    } catch (fault) {
      setError(fault);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title="Download rows"
      onClose={onClose}
      onSubmit={() => void save()}
      actions={
        <Button kind="primary" type="submit" busy={busy}>
          Download
        </Button>
      }
    >
      <Select
        label="Rows"
        value={rows}
        onValue={setRows}
        options={[
          { value: "all", label: job.evaluators.length > 1 ? "All rows, with the results of all evaluators" : "All rows" },
          ...(filters.evaluator !== null && job.evaluators.length > 1 ? [{ value: "one", label: `All rows, with the results of ${evaluator}` }] : []),
          ...(isNarrowed ? [{ value: "matching", label: filters.evaluator !== null && job.evaluators.length > 1 ? `Only the rows shown, on all pages, with the results of ${evaluator}` : "Only the rows shown, on all pages" }] : []),
        ]}
      />
      <Select label="Format" value={format} onValue={setFormat} options={FORMATS} />
      {error !== null && <ErrorNote error={error} />}
    </Dialog>
  );
}
