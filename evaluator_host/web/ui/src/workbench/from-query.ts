/** Loads the object in the page address: a stored evaluator, a row of a data set or of a job, a live trace. */
import { call } from "../api/http";
import type { DatasetReport, EvaluatorReport, EvaluatorScore, JobEvaluator, JobRowDetail, Result, Row, TraceReport } from "../api/types";
import { readJson } from "../json";
import { readsOf } from "../resources/mapping-advice";
import { type Draft, EMPTY, opened, rowTexts, withStored } from "./draft";
import { firstCode, rowOf } from "./test-rows";

/** Whether the address names an evaluator, a data set or a job. */
export function namesAnything(query: URLSearchParams): boolean {
  return query.has("evaluator") || query.has("dataset") || query.has("job");
}

/** A draft with a job's evaluator and one of the job's rows, and the result that the job stored for this row. */
export interface Found {
  draft: Draft;
  result: Result | null;
}

/** Return the draft with the evaluator or row that the address names. */
export async function draftFrom(query: URLSearchParams, before: Draft): Promise<Found> {
  let draft = before;
  const name = query.get("evaluator");
  if (name !== null) {
    const report = await stored(name);
    draft = opened(draft, report);
    const trace = query.get("trace");
    if (trace !== null) draft = withRow(draft, await traced(report.name, Number(trace)));
    else if (!query.has("dataset") && !query.has("job")) draft = await withFittingRow(draft, report);
  }
  const row = Number(query.get("row") ?? 0);
  const dataset = query.get("dataset");
  if (dataset !== null) {
    const [record, report] = await Promise.all([recordOf(dataset, row), call<DatasetReport>("GET", `/v1/datasets/${encodeURIComponent(dataset)}`)]);
    if (query.has("write")) draft = { ...EMPTY, code: firstCode(report.expected_column ?? null) };
    draft = withRow(draft, rowOf(record, report.outputs_column ?? null));
  }
  const job = query.get("job");
  return job === null ? { draft, result: null } : await ofJob(draft, job, row, query.get("label"));
}

/** If the test row lacks values that the code reads, return the draft with the first row of the evaluator's newest job. */
async function withFittingRow(draft: Draft, report: EvaluatorReport): Promise<Draft> {
  const inputs = readJson(draft.row.inputs);
  const has = inputs.ok && typeof inputs.value === "object" && inputs.value !== null ? Object.keys(inputs.value) : [];
  if (readsOf(report.evaluator, report.contract).every((name) => has.includes(name))) return draft;
  const points = await call<EvaluatorScore[]>("GET", `/v1/evaluators/${encodeURIComponent(report.name)}/scores`, { query: { limit: 20 } }).catch(() => []);
  const newest = points.find(({ score }) => score.scored > 0);
  if (newest === undefined) return draft;
  const row = await call<JobRowDetail>("GET", `/v1/jobs/${encodeURIComponent(newest.job)}/rows/0`).catch(() => null);
  return row === null || row.given === null ? draft : withRow(draft, row.given);
}

function withRow(draft: Draft, row: Row): Draft {
  return { ...draft, row: rowTexts(row) };
}

/** Return the evaluator that a reference names: `name`, `name@3`, `name@latest`. */
export function stored(reference: string): Promise<EvaluatorReport> {
  const [, name = reference, version] = /^(.+)@(\d+)$/.exec(reference) ?? [];
  const path = `/v1/evaluators/${encodeURIComponent(name.replace(/@latest$/, ""))}`;
  return call("GET", version === undefined ? path : `${path}/versions/${version}`);
}

async function traced(evaluator: string, number: number): Promise<Row> {
  const [found] = await call<TraceReport[]>("GET", `/v1/evaluators/${encodeURIComponent(evaluator)}/traces`, { query: { before: number + 1, limit: 1 } });
  if (found?.number !== number) throw new Error(`${evaluator} has no trace ${number}, or it was deleted.`);
  return { trace: found.trace };
}

async function recordOf(name: string, index: number): Promise<Record<string, unknown>> {
  const [record] = await call<Record<string, unknown>[]>("GET", `/v1/datasets/${encodeURIComponent(name)}/rows`, { query: { first: index, limit: 1 } });
  if (record === undefined) throw new Error(`The data set ${name} has no row ${index}.`);
  return record;
}

/** Return the draft with the row that the job's evaluators received, and the code that ran. */
async function ofJob(draft: Draft, id: string, index: number, label: string | null): Promise<Found> {
  const path = `/v1/jobs/${encodeURIComponent(id)}`;
  const [row, evaluators] = await Promise.all([
    call<JobRowDetail>("GET", `${path}/rows/${index}`),
    call<JobEvaluator[]>("GET", `${path}/evaluators`),
  ]);
  const ran = evaluators.find((one) => one.label === label) ?? evaluators[0];
  const named = ran !== undefined && ran.name !== null && ran.version !== null ? { name: ran.name, version: ran.version } : null;
  const with_ = ran === undefined ? draft : withStored(draft, ran.evaluator, named);
  const result = row.results.find((one) => one.evaluator === ran?.label)?.result ?? null;
  return row.given === null ? { draft: with_, result: null } : { draft: withRow(with_, row.given), result };
}
