/** The rows below the editor: how stored data becomes rows, and the statistics of their results. */
import type { Result, Row } from "../api/types";
import { difference } from "../resources/format";
import { rowOfRecord } from "./draft";
import { expectationText, readExpectation, unmet } from "./expectation";

export interface TestRow {
  id: string;
  row: Row;
  /** Expected result as typed; empty if nothing is expected. */
  expected: string;
  /** Origin of the row: "capitals, row 3"; empty for a typed row. */
  from: string;
}

export const MOST_ROWS = 50;

export function newRow(row: Row, from = "", expected = ""): TestRow {
  return { id: crypto.randomUUID?.() ?? String(Math.random()), row, expected, from };
}

/** Initial code for rows of a data set: compares the output with the column of expected answers, if there is one. */
export function firstCode(expected: string | null): string {
  const compared = expected === null ? "bool(outputs)" : `outputs == inputs[${JSON.stringify(expected)}]`;
  return `def evaluate(inputs, outputs, trace):\n    return ${compared}\n`;
}

/** A record of a data set as a row whose outputs are in `column`. */
export function rowOf(record: Record<string, unknown>, column: string | null): Row {
  const row = rowOfRecord(record);
  if (row === record || column === null || column === "outputs" || column === "output" || !(column in record)) return row;
  return { ...row, outputs: record[column] };
}

const MOST_READ = 8; // maximum number of columns that are shown because the code reads them

/** The columns of a table of records: those that the code reads, and then the most common ones, up to `few` columns. */
export function shownColumns(records: readonly object[], reads: readonly string[], few: number): string[] {
  const counts = new Map<string, number>();
  for (const record of records) for (const name of Object.keys(record)) counts.set(name, (counts.get(name) ?? 0) + 1);
  const names = [...counts].sort(([, one], [, other]) => other - one).map(([name]) => name);
  const read = names.filter((name) => reads.includes(name)).slice(0, MOST_READ);
  return [...read, ...names.filter((name) => !read.includes(name)).slice(0, Math.max(0, few - read.length))];
}

export interface Summary {
  scored: number;
  failed: number;
  mean: number | null;
  passed: number;
  judged: number;
  expected: number;
  met: number;
}

export function summaryOf(rows: readonly TestRow[], results: ReadonlyMap<string, Result>): Summary {
  const summary: Summary = { scored: 0, failed: 0, mean: null, passed: 0, judged: 0, expected: 0, met: 0 };
  let sum = 0;
  for (const one of rows) {
    const result = results.get(one.id);
    if (result === undefined) continue;
    if (result.status === "failed") summary.failed += 1;
    if (result.score !== null && result.status === "scored") {
      summary.scored += 1;
      sum += result.score;
    }
    if (result.passed !== null) {
      summary.judged += 1;
      if (result.passed) summary.passed += 1;
    }
    const expectation = readExpectation(one.expected);
    if (expectation !== null && expectation.kind !== "wrong") {
      summary.expected += 1;
      if (unmet(expectation, result) === null) summary.met += 1;
    }
  }
  summary.mean = summary.scored === 0 ? null : sum / summary.scored;
  return summary;
}

/** The change of the mean, over the rows that had a score before and have one now; 0 if no row has both. */
export function meanChange(rows: readonly TestRow[], before: ReadonlyMap<string, Result>, now: ReadonlyMap<string, Result>): number {
  const scoreOf = (results: ReadonlyMap<string, Result>, id: string) => (results.get(id)?.status === "scored" ? (results.get(id)?.score ?? null) : null);
  const pairs = rows.map(({ id }) => [scoreOf(before, id), scoreOf(now, id)] as const).filter((pair): pair is readonly [number, number] => pair[0] !== null && pair[1] !== null);
  const [was, is] = [0, 1].map((side) => pairs.reduce((sum, pair) => sum + pair[side]!, 0) / pairs.length);
  return pairs.length === 0 ? 0 : difference(was!, is!);
}

/** A stored case: a row, its name and its expected result. */
export type Case = Row & { case?: string | null; expect: unknown };

/** The rows with an expected result, as cases. */
export function casesOf(rows: readonly TestRow[]): Case[] {
  const expects = rows.filter(({ expected }) => !["wrong", undefined].includes(readExpectation(expected)?.kind));
  return expects.map(({ row, from, expected }) => ({ ...row, ...(from === "" ? {} : { case: from.slice(0, 200) }), expect: expected.trim() }));
}

/** Stored cases as rows. */
export function rowsOfCases(cases: readonly unknown[]): TestRow[] {
  return (cases as Case[]).slice(0, MOST_ROWS).map(({ case: name, expect, ...row }) => newRow(row, name ?? "", expectationText(expect)));
}
