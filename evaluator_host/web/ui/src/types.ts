/** What the host takes and answers, as docs/api.md says. */

export type Language = "python" | "javascript" | "typescript";
export type Contract = "evaluate" | "evaluate-v1" | "main" | "nemo" | "uipath";

export interface Limits {
  timeout_s: number;
  memory_mb: number;
  processes: number;
  disk_mb: number;
  log_kb: number;
  result_kb: number;
}

export interface Settings {
  correct_answer_key: string;
  entry: string | null;
  config: Record<string, unknown>;
  score_output: string | null;
}

/** An evaluator as it is sent; what is left out has the host's default. */
export interface EvaluatorIn {
  code: string;
  language: Language;
  contract?: Contract | "auto";
  packages?: string[];
  threshold?: number | null;
  settings?: Partial<Settings>;
  limits?: Partial<Limits>;
  policy?: "none" | "restricted";
  python?: string | null;
}

export interface Row {
  inputs?: Record<string, unknown>;
  outputs?: unknown;
  trace?: Record<string, unknown> | null;
  variables?: Record<string, unknown> | null;
  criteria?: unknown;
}

export interface Note {
  code: string;
  message: string;
}

export interface Fault {
  code: string;
  message: string;
  type: string | null;
  line: number | null;
  column: number | null;
  traceback: string | null;
  hint: string | null;
}

export interface Logs {
  stdout: string;
  stderr: string;
  truncated: boolean;
}

export interface Timing {
  queue: number;
  environment: number;
  load: number;
  run: number;
  total: number;
}

export interface Package {
  name: string;
  version: string;
  requested: boolean;
}

export interface EnvironmentInfo {
  digest: string;
  runtime: string;
  packages: Package[];
}

export interface Result {
  status: "scored" | "failed" | "skipped";
  score: number | null;
  passed: boolean | null;
  label: string | null;
  reason: string | null;
  metrics: Record<string, number>;
  value: unknown;
  warnings: Note[];
  error: Fault | null;
  logs: Logs;
  timing_ms: Timing;
  evaluator: {
    name: string | null;
    version: number | null;
    digest: string;
    language: Language;
    contract: Contract | null;
    contract_source: string | null;
  };
  environment: EnvironmentInfo;
  sandbox: { backend: string; warm: boolean; peak_memory_kb: number | null };
}

/** What an evaluator class of contract `uipath` says of itself. */
export interface EvaluatorClass {
  name: string;
  line: number | null;
  error: Fault | null;
  types: Record<string, unknown> | null;
  config: Record<string, unknown> | null;
}

export interface CheckReport {
  ok: boolean;
  contract: Contract | null;
  contract_source: string | null;
  reason: string | null;
  parameters: string[];
  missing_imports: { module: string; line: number; pin: string | null }[];
  problems: Fault[];
  notes: Note[];
  environment: EnvironmentInfo;
  logs: Logs;
  classes: EvaluatorClass[];
}

export interface EnvironmentReport {
  key: string;
  digest: string | null;
  status: "building" | "ready" | "failed";
  language: Language;
  runtime: string;
  packages: Package[];
  size_bytes: number;
  built_at: string | null;
  build_s: number | null;
  import_ms: Record<string, number>;
  notes: string[];
  lock: string | null;
  error: string | null;
}

export interface BuildEvent {
  step: "resolving" | "downloading" | "installing" | "checking" | "ready" | "failed";
  done: number;
  total: number | null;
  detail: string | null;
}

export interface Proof {
  verdict: "proven" | "differs" | "not_comparable";
  rows: number;
  scored: number;
  generated: boolean;
  left_out: number;
  differing: number;
  differences: { row: number; given: Row; message: string; old: Result; new: Result }[];
  why: string | null;
}

export interface Remark {
  line: number | null;
  message: string;
}

export interface Migration {
  status: "migrated" | "current" | "refused" | "no_evaluator";
  language: Language;
  code: string;
  diff: string;
  changes: Remark[];
  unresolved: Remark[];
  proof: Proof | null;
}

/** An evaluator as it is stored, every field filled in. */
export interface StoredEvaluator {
  code: string;
  language: Language;
  contract: Contract | "auto";
  packages: string[];
  threshold: number | null;
  settings: Settings;
  limits: Limits;
  policy: "none" | "restricted";
  python: string | null;
}

export interface EvaluatorReport {
  name: string;
  version: number;
  latest: number;
  description: string;
  sampling: number;
  digest: string;
  contract: Contract | null;
  contract_source: string | null;
  problem: Fault | null;
  environment: EnvironmentInfo | null;
  evaluator: StoredEvaluator;
  created_at: string;
  created_by: string | null;
  origin: { version: number; proof: Proof } | null;
}
