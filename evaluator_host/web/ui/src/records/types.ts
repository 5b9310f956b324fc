/** What the host keeps, as it answers it: data sets, jobs, what they came to, traces. */
import type { Contract, EvaluatorIn, Result, Row, StoredEvaluator } from "../types";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Columns = Record<string, Json>;

export interface DatasetReport {
  name: string;
  id: string;
  format: string;
  rows: number;
  bad_row_count: number;
  bad_rows: { line: number; message: string }[];
  columns: string[];
  size_bytes: number;
  digest: string;
  created_at: string;
}

export type JobStatus = "queued" | "running" | "paused" | "completed" | "failed" | "cancelled";

export interface Target {
  base_url: string;
  model: string;
  api_key: string | null;
  prompt_template: string | null;
  messages: Columns[];
  system: string | null;
  inference: Columns;
  concurrency: number;
  timeout_s: number;
  retries: number;
}

export interface JobConfig {
  parallelism: number | null;
  limit_samples: number | null;
  isolation: "row" | "batch";
  max_failures: number | null;
}

export interface JobReport {
  id: string;
  status: JobStatus;
  evaluators: string[];
  dataset: string;
  mapping: Record<string, string>;
  target: Target | null;
  config: JobConfig;
  progress: { rows: number; done: number; failed: number; rows_per_s: number | null; eta_s: number | null; generated: number | null };
  error: { code: string; message: string } | null;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
}

export interface JobOrder {
  evaluators: (string | EvaluatorIn)[];
  dataset: string;
  mapping: Record<string, string>;
  target: (Omit<Target, "api_key" | "messages"> & { api_key: { secret: string } | null; messages: Columns[] | null }) | null;
  config: JobConfig;
}

export interface Bin {
  lower_bound: number;
  upper_bound: number;
  count: number;
}

export interface Aggregate {
  name: string;
  count: number;
  nan_count: number;
  sum: number | null;
  mean: number | null;
  min: number | null;
  max: number | null;
  std_dev: number | null;
  variance: number | null;
  percentiles: Record<string, number> | null;
  histogram: Bin[];
}

export interface EvaluatorFigures {
  evaluator: string;
  rows: number;
  scored: number;
  failed: number;
  skipped: number;
  pass_rate: number | null;
  metrics: Aggregate[];
  errors: { code: string; count: number; example_row: number }[];
  run_ms: { p50: number; p90: number; p99: number } | null;
  together?: Result | null;
}

export interface FailureGroup {
  evaluator: string;
  code: string;
  type: string | null;
  message: string;
  line: number | null;
  count: number;
  rows: number[];
}

export interface RequestLog {
  attempts?: { status?: number | null; ms?: number; error?: string | null }[];
  latency_ms?: number;
  tokens?: Record<string, number>;
  cost?: number;
  finish_reason?: string | null;
  error?: string | null;
}

export interface JobRow {
  index: number;
  evaluator: string;
  row: Columns;
  result: Result;
  output: Json;
  request: RequestLog | null;
}

export interface JobRowPage {
  rows: JobRow[];
  next_cursor: string | null;
  total: number | null;
}

export interface JobRowDetail {
  index: number;
  row: Columns;
  given: Row | null;
  results: JobRow[];
}

export interface JobEvaluator {
  label: string;
  name: string | null;
  version: number | null;
  digest: string;
  evaluator: StoredEvaluator & { contract: Contract | "auto" };
}

export interface Difference {
  metric: string;
  n: number;
  before: number | null;
  after: number | null;
  difference: number | null;
  interval: [number, number] | null;
  significant: boolean;
  better: number;
  worse: number;
}

export interface Change {
  row: number;
  before: number | null;
  after: number | null;
}

export interface Comparison {
  before: string;
  after: string;
  metrics: Difference[];
  regressions: Change[];
  improvements: Change[];
  regressed: number;
  improved: number;
}

export interface Point {
  before: number;
  after: number;
  count: number;
  row: number;
}

export interface Pairs {
  before: string;
  after: string;
  metric: string;
  n: number;
  points: Point[];
  binned: boolean;
}

export interface TraceReport {
  number: number;
  evaluator: string;
  trace_id: string;
  received_at: string;
  result: Result;
  trace: Columns;
}

export function isFinal(status: JobStatus): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}
