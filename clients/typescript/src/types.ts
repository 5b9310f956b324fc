/** Short names for the types of `/v1`. `schema.ts` is generated; only types that the OpenAPI document leaves open are written here. */
import type { components } from "./schema.js";

type Schemas = components["schemas"];

/** Any JSON value; a `bigint` is written as an integer. */
export type Json = null | boolean | number | bigint | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

export type Language = Schemas["Language"];
export type Limits = Schemas["Limits"];
export type Isolation = Schemas["Isolation"];

/** An evaluator with its code, `{ code: "def evaluate(…): …" }`, or the name of a stored one: `"exact-match@3"`. */
export type Evaluator = Schemas["EvaluatorIn"] | string;
export type PastedEvaluator = Schemas["EvaluatorIn"];
/** What is stored with a version of an evaluator beside its code; `cases` are rows, each with the `expect`ed result. */
export type VersionFacts = Omit<Schemas["NewVersionIn"], keyof PastedEvaluator>;
export type Row = Schemas["RowIn"];
export type Result = Schemas["EvaluationResult"];
export type Batch = Schemas["Batch"];
export type CheckReport = Schemas["CheckReport"];
export type HostInfo = Schemas["HostInfo"];
export type UsageReport = Schemas["UsageReport"];
export type Migration = Schemas["Migration"];
export type MigrationIn = Schemas["MigrateIn"];

export type EvaluatorReport = Schemas["EvaluatorReport"];
export type TraceReport = Schemas["TraceReport"];
export type DatasetReport = Schemas["DatasetReport"];
export type DataFile = Schemas["DataFile"];
export type SecretReport = Schemas["SecretReport"];
export type ScoreHistory = Schemas["ScoreHistory"];

export type JobIn = Schemas["JobIn"];
export type JobStatus = Schemas["JobStatus"];
export type JobReport = Schemas["JobReport"];
export type JobStatistics = Schemas["JobStatistics"];
export type JobEvaluatorReport = Schemas["JobEvaluatorReport"];
export type ColumnStatistics = Schemas["ColumnStatistics"];
export type ComparedColumn = Schemas["ComparedColumn"];
export type FailureGroup = Schemas["FailureGroup"];
export type Comparison = Schemas["Comparison"];
export type Pairs = Schemas["Pairs"];
export type JobRow = Omit<Schemas["JobRow"], "row" | "result" | "output"> & { row: JsonObject; result: Result; output: Json };
export type JobRowPage = Omit<Schemas["JobRowPage"], "rows"> & { rows: JobRow[] };
export type JobRowDetail = Schemas["JobRowDetail"];

/** Filters of a job's rows. */
export interface RowFilters {
  evaluator?: string;
  status?: string;
  passed?: boolean;
  error?: string;
  min_score?: number;
  max_score?: number;
  /** Numbers of rows. */
  row?: number[];
  text?: string;
  /** Conditions on columns of the data set: `city=Rome`, `score>=0.5`. */
  where?: string | string[];
  sort?: string;
}
