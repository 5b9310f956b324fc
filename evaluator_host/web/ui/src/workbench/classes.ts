/** Reads default configuration and criteria from the evaluator classes that a check found. */
import type { CheckReport, EvaluatorClass } from "../api/types";
import type { Draft } from "./draft";

/** The class that runs: the one in the settings, else the first. */
export function classOf(report: Pick<CheckReport, "classes"> | null, draft: Draft): EvaluatorClass | null {
  const classes = report?.classes ?? [];
  return classes.find((one) => one.name === draft.settings.entry.trim()) ?? classes[0] ?? null;
}

interface Schema {
  properties?: Record<string, { default?: unknown; type?: string }>;
}

const BLANKS: Record<string, unknown> = { string: "", number: 0, integer: 0, boolean: false, array: [], object: {} };

/** Criteria to fill in: the default ones, else every field of the schema with its default or a blank. */
export function criteriaOf(shown: EvaluatorClass | null): unknown {
  const given = shown?.config?.["defaultEvaluationCriteria"];
  if (given !== null && given !== undefined) return given;
  const schema = shown?.types?.["evaluationCriteriaSchema"] as Schema | undefined;
  const fields = Object.entries(schema?.properties ?? {});
  if (fields.length === 0) return null;
  return Object.fromEntries(fields.map(([name, field]) => [name, field.default ?? BLANKS[field.type ?? ""] ?? null]));
}
