/** Rows of a data set: read by number, found by text and conditions, and changed. */
import type { Columns, DatasetReport, FoundRow, FoundRows } from "./types";
import { call } from "./http";

export interface Search {
  text: string;
  where: readonly string[];
  /** Column to sort by; with `-` before its name, in descending order. */
  sort: string | null;
}

export interface Edit {
  set?: Record<number, Columns>;
  remove?: readonly number[];
  add?: readonly Columns[];
  add_from?: { job: string; rows: readonly number[] } | { evaluator: string; traces: readonly number[] };
  create?: boolean;
  /** The version to which the row numbers belong; the host answers 409 if there is a newer one. */
  version?: number;
}

export function routeOf(name: string): string {
  return `/v1/datasets/${encodeURIComponent(name)}`;
}

export function editDataset(name: string, edit: Edit): Promise<DatasetReport> {
  return call("PATCH", routeOf(name), { body: edit });
}

/** A page of rows with their numbers; without a search the host reads only these rows. */
export async function pageOfRows(report: DatasetReport, { text, where, sort }: Search, first: number, limit: number, signal: AbortSignal): Promise<FoundRows> {
  if (text === "" && where.length === 0 && sort === null) {
    const rows = await call<Columns[]>("GET", `${routeOf(report.name)}/rows`, { signal, query: { first, limit } });
    return { total: report.rows, rows: rows.map((row, at): FoundRow => ({ index: first + at, row })) };
  }
  const query = new URLSearchParams([["text", text], ["first", String(first)], ["limit", String(limit)], ...where.map((one) => ["where", one]), ...(sort === null ? [] : [["sort", sort]])]);
  return call("GET", `${routeOf(report.name)}/search?${query}`, { signal });
}
