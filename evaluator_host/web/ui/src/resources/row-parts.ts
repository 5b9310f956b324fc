/** The inputs and the output in a row of a job, for tables. */
import { isObject } from "../json";
import type { Columns, JobReport, JobRow } from "../api/types";

/** The columns of a row without its output. */
export function inputsOf(job: JobReport, { row }: JobRow): Columns {
  if (isObject(row["inputs"])) return row["inputs"];
  const output = job.mapping["outputs"] ?? "";
  return Object.fromEntries(Object.entries(row).filter(([name]) => ![output, "outputs", "output", "trace"].includes(name)));
}

export function outputOf(job: JobReport, { row, output }: JobRow): unknown {
  if (job.target !== null || output !== null) return output ?? ""; // a model's answer, or a template's text
  const mapped = job.mapping["outputs"];
  return (mapped === undefined ? undefined : (row[mapped] ?? at(row, mapped))) ?? row["outputs"] ?? row["output"] ?? "";
}

/** The value at a dotted path, as a mapping names it. */
function at(value: unknown, path: string): unknown {
  return path.split(".").reduce<unknown>((held, name) => (isObject(held) ? held[name] : undefined), value);
}

/** The id in the row's column `id`; empty if the row has none. */
export function idOf(row: Columns): string {
  const id = row["id"];
  return typeof id === "string" || typeof id === "number" ? String(id) : "";
}
