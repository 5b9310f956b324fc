/** Short names for the types of requests and responses of `/v1`. The client's `schema.ts` is generated; only types that the OpenAPI document leaves open are written here. */
import type { components } from "../../../../../clients/typescript/src/schema";

type Schemas = components["schemas"];

export type ChangePage = Schemas["ChangePage"];
export type Language = Schemas["Language"];
export type Contract = Exclude<Schemas["Contract"], "auto">;
export type Limits = Schemas["Limits"];
export type Settings = Schemas["EvaluatorSettings"];
export type HostInfo = Schemas["HostInfo"];
export type ProblemBody = Schemas["ProblemBody"];
export type Problem = Schemas["FieldProblem"];

export type DataFile = Schemas["DataFile"];
export type EvaluatorIn = Schemas["EvaluatorIn"];
export type Row = Schemas["RowIn"];
export type Result = Schemas["EvaluationResult"];
/** A warning: its code, its message, and its remedy. */
export type Note = Schemas["Note"];
/** A warning and the number of rows that have it. */
export type WarningCount = Schemas["WarningCount"];
export type EvaluationError = Schemas["EvaluationError"];
export type Fix = Schemas["Fix"];
export type Timing = Schemas["Timing"];
export type CheckReport = Schemas["CheckReport"];
export type RowChange = Schemas["RowChange"];
export type RowChanges = Schemas["RowChanges"];
export type EditorAnswer = Schemas["EditorAnswer"];
export type EvaluatorClass = Schemas["EvaluatorClass"];
export type EnvironmentReport = Schemas["EnvironmentReport"];
export type PackageVersions = Schemas["PackageVersions"];

export type StoredMigration = Schemas["StoredMigration"];
export type SecretReport = Schemas["SecretReport"];
export type RegisteredModel = Schemas["RegisteredModel"];
export type ModelHosts = Schemas["ModelHosts"];
export type ModelTest = Schemas["ModelTest"];
export type ModelUsage = Schemas["ModelUsage"];
export type DayUsage = Schemas["DayUsage"];
export type ReadyJudge = Schemas["ReadyJudge"];
export type Agreement = Schemas["Agreement"];
/** A judge's form; in the OpenAPI document, rows and parameters are objects with any values. */
export type Judge = Schemas["JudgeIn"];

export type Proof = Schemas["Proof"];
export type Remark = Schemas["Remark"];
export type Migration = Schemas["Migration"];

/** In a response, the name and the version are fields of the report, not of the evaluator in it. */
export type StoredEvaluator = Omit<Schemas["Evaluator"], "name" | "version">;
/** The contract is never `auto`: it is the one that the host found, or null. */
export type EvaluatorReport = Omit<Schemas["EvaluatorReport"], "contract" | "evaluator"> & { contract: Contract | null; evaluator: StoredEvaluator };

export type DatasetReport = Schemas["DatasetReport"];
export type ColumnFacts = Schemas["ColumnFacts"];
export type JobStatus = Schemas["JobStatus"];
export type JobIn = Schemas["JobIn"];
export type JobReport = Omit<Schemas["JobReport"], "target"> & { target: Target | null };
export type MappingAdvice = Schemas["MappingAdvice"];
export type JobScore = Schemas["JobScore"];
export type ScheduleReport = Schemas["ScheduleReport"];
export type AlertReport = Schemas["AlertReport"];
export type AlertRule = Schemas["AlertRule"];
export type AlertMetric = Schemas["Metric"];
export type EvaluatorScore = Schemas["EvaluatorScore"];
export type ScoreHistory = Schemas["ScoreHistory"];
export type ScoreLine = Schemas["ScoreLine"];
export type JobEvaluator = Omit<Schemas["JobEvaluatorReport"], "evaluator"> & { evaluator: StoredEvaluator };
export type LabelQueue = Schemas["LabelQueue"];
export type LabelPage = Schemas["LabelPage"];
export type LabelRow = Omit<Schemas["LabelRow"], "given" | "results" | "row"> & { given: Row | null; results: JobRow[]; row: Columns };
export type JobStatistics = Schemas["JobStatistics"];
export type EvaluatorStatistics = Schemas["EvaluatorStatistics"];
export type Aggregate = Schemas["Aggregate"];
export type ColumnStatistics = Schemas["ColumnStatistics"];
export type ComparedColumn = Schemas["ComparedColumn"];
export type GroupStatistics = Schemas["GroupStatistics"];
/** In the OpenAPI document, messages and inference parameters are objects with any values. */
export type Target = Omit<Schemas["Target"], "messages" | "inference"> & { messages: Columns[]; inference: Columns };
export type FailureGroup = Schemas["FailureGroup"];
export type Comparison = Schemas["Comparison"];
export type Difference = Schemas["Difference"];
export type Change = Schemas["Change"];
export type Pairs = Schemas["Pairs"];

/** Any JSON value. In the OpenAPI document, a row of a data set is an object with any values. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Columns = Record<string, Json>;
export type FoundRow = Omit<Schemas["FoundRow"], "row"> & { row: Columns };
export type FoundRows = Omit<Schemas["FoundRows"], "rows"> & { rows: FoundRow[] };

/** In the OpenAPI document, stored results and rows are only objects. */
export type JobRow = Omit<Schemas["JobRow"], "row" | "result" | "output" | "request"> & { row: Columns; result: Result; output: Json; request: RequestLog | null };
export type JobRowPage = Omit<Schemas["JobRowPage"], "rows"> & { rows: JobRow[] };
export type JobRowDetail = Omit<Schemas["JobRowDetail"], "row" | "given" | "results"> & { row: Columns; given: Row | null; results: JobRow[] };
export type TraceReport = Omit<Schemas["TraceReport"], "result" | "trace"> & { result: Result; trace: Columns };

/** The requests that a job sent to its model for one row; only an object in the OpenAPI document. */
export interface RequestLog {
  attempts?: { status?: number | null; ms?: number; error?: string | null }[];
  latency_ms?: number;
  tokens?: Record<string, number>;
  cost?: number;
  finish_reason?: string | null;
  error?: string | null;
  body?: Json;
  response?: Json;
}

/** An event of `GET /v1/environments/{digest}/events`; OpenAPI 3.1 does not describe events. */
export interface BuildEvent {
  step: "resolving" | "downloading" | "installing" | "checking" | "ready" | "failed";
  done: number;
  total: number | null;
  detail: string | null;
}

/** The noun for the counts of a job's progress: with several evaluators, each row has a result of each of them. */
export function unitOf({ evaluators }: { evaluators: readonly string[] }): "row" | "result" {
  return evaluators.length === 1 ? "row" : "result";
}

export function isFinal(status: JobStatus): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}
