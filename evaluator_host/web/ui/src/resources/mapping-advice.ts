/** The host's suggestion of a mapping: the columns that probably fill the inputs that evaluators read, and inputs without a column. */
import { call } from "../api/http";
import type { EvaluatorIn, MappingAdvice, StoredEvaluator } from "../api/types";
import { useLoaded } from "../components/use-loaded";
import { namesOf } from "../workbench/signature";

export interface MappingLine {
  field: string;
  source: string;
}

/** A value that an evaluator reads from a row; `name` is a key of the inputs. */
export interface Read {
  evaluator: string;
  name: string;
}

/** The keys of the row that the code reads, as far as its text shows them; none for contracts of other platforms. */
export function readsOf(evaluator: EvaluatorIn | StoredEvaluator, contract: string | null): string[] {
  const { code, language = "python" } = evaluator;
  const [names, entry] = namesOf(code, language);
  const is = contract === null || contract === "auto" ? (entry === "main" ? "main" : names.length === 4 ? "evaluate-v1" : "evaluate") : contract;
  if (is === "main" && language === "python") return names.map(({ name, optional }) => (optional ? "" : name)).filter((name) => name !== "");
  if (is !== "evaluate" && is !== "evaluate-v1" && is !== "main") return [];
  const inputs = names[is === "evaluate-v1" ? 1 : 0]?.name;
  const truth = is === "evaluate-v1" && names[3] !== undefined && used(code, names[3].name) > 1;
  return [...new Set([...(inputs === undefined ? [] : keysOf(code, inputs, language === "python")), ...(truth ? [evaluator.settings?.correct_answer_key ?? "correct_answer"] : [])])];
}

function used(code: string, name: string): number {
  return code.split(new RegExp(`\\b${name.replaceAll("$", "\\$")}\\b`)).length - 1;
}

/** Keys of `name` in code: `name["key"]`, `name.get("key")`; in JavaScript also `name.key`. */
function keysOf(code: string, name: string, python: boolean): string[] {
  const start = `(?<![\\w.$])${name.replaceAll("$", "\\$")}`;
  const ways = python ? [`${start}(?:\\[\\s*|\\.get\\(\\s*)["']([^"'\\n]{1,80})["']\\s*[\\],)](?!\\s*=[^=])`] : [`${start}(?:\\?\\.)?\\[\\s*["'\`]([^"'\`\\n]{1,80})["'\`]\\s*\\]`, `${start}\\??\\.([A-Za-z_]\\w{0,79})\\b(?!\\s*\\()`];
  return ways.flatMap((way) => [...code.matchAll(new RegExp(way, "g"))].map((found) => found[1]!));
}

/** The host's suggestion for a job: lines of the mapping, and inputs that evaluators read. Empty until the host has answered, and if the host has no suggestion. */
export interface Advice {
  mapping: readonly MappingLine[];
  reads: readonly Read[];
  /** Whether an evaluator reads the outputs. */
  outputs: boolean;
  /** Whether the host has not answered yet. */
  asking: boolean;
}

const NONE: Advice = { mapping: [], reads: [], outputs: false, asking: false };

/** Ask the host for a mapping. `generated` says that a model writes the outputs; `names` are those of the evaluators, in order. */
export function useAdvice(evaluators: readonly (string | EvaluatorIn)[], dataset: string | null, generated = false, names: readonly string[] = []): Advice {
  const ready = dataset !== null && dataset !== "" && evaluators.length > 0;
  const ask = async (signal: AbortSignal) => (ready ? await call<MappingAdvice>("POST", "/v1/jobs/mapping", { body: { evaluators, dataset }, signal }) : null);
  const { value, loading } = useLoaded(ask, [dataset, JSON.stringify(evaluators)]);
  if (!ready || value === null) return { ...NONE, asking: ready && loading };
  const lines = Object.entries(value.mapping).map(([field, source]) => ({ field, source }));
  return {
    mapping: generated ? lines.filter(({ field }) => field !== "outputs") : lines,
    reads: value.reads.flatMap(({ evaluator, inputs }, at) => inputs.map((name) => ({ evaluator: names[at] ?? evaluator, name }))),
    outputs: !generated && value.reads.some((one) => one.outputs),
    asking: loading,
  };
}

/** The inputs that no column fills. */
export function unmapped(columns: readonly string[], reads: readonly Read[], mapping: readonly MappingLine[]): Read[] {
  if (isRow(columns) || mapping.some(({ field }) => field === "inputs" || field === "variables")) return [];
  const filled = new Set([...columns, ...mapping.map(({ field }) => field.trim().replace(/^(inputs|variables)\./, ""))]);
  return reads.filter(({ name }) => !filled.has(name));
}

export function lacksOutputs(columns: readonly string[], mapping: readonly MappingLine[]): boolean {
  return columns.length > 0 && !columns.includes("outputs") && !columns.includes("output") && !mapping.some(({ field }) => field.trim() === "outputs");
}

/** Whether the records are rows as the API takes them: their fields are those of the row. */
function isRow(columns: readonly string[]): boolean {
  return columns.includes("inputs") || columns.includes("variables");
}
