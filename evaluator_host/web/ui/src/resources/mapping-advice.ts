/** Which columns of a data set probably fill what an evaluator reads of a row, and what no column fills. */
import type { EvaluatorIn, StoredEvaluator } from "../api/types";
import { namesOf } from "../workbench/signature";
import { outputColumn } from "../workbench/test-rows";

export interface MappingLine {
  field: string;
  source: string;
}

/** What an evaluator reads of a row: `name` is a key of the inputs. */
export interface Read {
  evaluator: string;
  name: string;
}


const ALIKE: readonly (readonly string[])[] = [
  ["expected", "expectedoutput", "expectedanswer", "reference", "referenceanswer", "referenceoutput", "groundtruth", "truth", "gold", "golden", "label", "target", "correctanswer", "correct", "ideal", "gt"],
  ["question", "query", "prompt", "input", "userinput", "instruction"],
  ["context", "contexts", "documents", "passages", "retrieved"],
  ["id", "rowid", "key"],
];
const OUTPUTS = ["output", "outputs", "completion", "response", "prediction", "generated", "actual", "actualoutput"];

function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[^\p{L}\p{N}]+/gu, "");
}

/** The keys that the code reads of its row, as far as its text shows them. Other platforms' contracts find theirs themselves. */
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

/** The mapping that the names of columns suggest. `generated`: a model writes the outputs. */
export function suggested(columns: readonly string[], reads: readonly Read[], generated: boolean): MappingLine[] {
  if (isRow(columns)) return [];
  const output = generated ? null : outputColumn(columns);
  const lines = output === null || output === "outputs" || output === "output" ? [] : [{ field: "outputs", source: output }];
  for (const name of new Set(reads.map((one) => one.name))) {
    const source = columns.includes(name) ? null : likeliest(name, columns, output);
    if (source !== null) lines.push({ field: name === "correct_answer" ? name : `inputs.${name}`, source });
  }
  return lines;
}

function likeliest(name: string, columns: readonly string[], output: string | null): string | null {
  const wanted = plain(name);
  const same = columns.find((column) => plain(column) === wanted);
  if (same !== undefined) return same;
  if (OUTPUTS.includes(wanted)) return output;
  const group = ALIKE.find((words) => words.includes(wanted)) ?? [];
  return columns.find((column) => column !== output && group.includes(plain(column))) ?? null;
}

/** What stays without a column. */
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
