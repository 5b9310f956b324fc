/** The form of the migration page: the legacy evaluator and the options. */
import { call } from "../api/http";
import { readJson } from "../json";
import type { EvaluatorReport, Language, Migration, StoredEvaluator, StoredMigration } from "../api/types";

export interface Legacy {
  code: string;
  language: Language;
  to: "evaluate" | "main";
  answerKey: string;
  packages: string[];
  /** The rows for the proof. */
  proofOn: "generated" | "rows" | "dataset";
  rows: string;
  dataset: string;
  mapping: string;
  /** The stored evaluator, while its code is unchanged here. */
  stored: EvaluatorReport | null;
}

export const EXAMPLE = `def evaluate(app_params, inputs, output, correct_answer):
    """1 when the answer is right, however it is written."""
    return 1.0 if output.strip().lower() == correct_answer.strip().lower() else 0.0
`;

export const NOTHING: Legacy = {
  code: "",
  language: "python",
  to: "evaluate",
  answerKey: "",
  packages: [],
  proofOn: "generated",
  rows: "",
  dataset: "",
  mapping: "",
  stored: null,
};

export function ofStored(report: EvaluatorReport, before: Legacy): Legacy {
  const evaluator: StoredEvaluator = report.evaluator;
  const key = evaluator.settings.correct_answer_key;
  return { ...before, code: evaluator.code, language: evaluator.language, packages: [...evaluator.packages], answerKey: key === "correct_answer" ? "" : key, stored: report };
}

/** Return the rows for the proof as API fields, or the reason why they are not valid. */
export function proofRows(legacy: Legacy): { rows: Record<string, unknown>; fault: string | null } {
  if (legacy.proofOn === "generated") return { rows: {}, fault: null };
  if (legacy.proofOn === "rows") {
    const read = readJson(legacy.rows);
    if (!read.ok) return { rows: {}, fault: read.message };
    if (!Array.isArray(read.value)) return { rows: {}, fault: 'Rows must be a list: [{"inputs": {…}, "outputs": …}].' };
    return { rows: { rows: read.value }, fault: null };
  }
  const mapping = readJson(legacy.mapping);
  if (!mapping.ok) return { rows: {}, fault: mapping.message };
  if (legacy.dataset === "") return { rows: {}, fault: "Choose a data set." };
  return { rows: { dataset: legacy.dataset, ...(mapping.given ? { mapping: mapping.value } : {}) }, fault: null };
}

export function migrate(legacy: Legacy, rows: Record<string, unknown>, adapt: boolean, signal: AbortSignal): Promise<Migration> {
  const body = {
    code: legacy.code,
    language: legacy.language,
    to: legacy.to,
    adapt,
    ...(legacy.packages.length > 0 ? { packages: legacy.packages } : {}),
    ...(legacy.answerKey.trim() === "" ? {} : { settings: { correct_answer_key: legacy.answerKey.trim() } }),
    ...rows,
  };
  return call("POST", "/v1/migrate", { body, signal });
}

/** Make the next version of a stored evaluator; it has the proof, and names the version that it was made from. */
export async function acceptStored(name: string, rows: Record<string, unknown>, { force, adapt }: { force: boolean; adapt: boolean }): Promise<number | null> {
  const [answer] = await call<StoredMigration[]>("POST", "/v1/evaluators/migrate", { body: { names: [name], dry_run: false, force, adapt, ...rows } });
  return answer?.made ?? null;
}
