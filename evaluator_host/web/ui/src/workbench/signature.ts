/** Arguments and allowed results of the code, by contract: for completion, hover and the card above the editor. */
import type { Row } from "../api/types";
import type { Known, Parameter } from "../editor/knowledge";
import { toRow, type Draft } from "./draft";

interface Given {
  name: string;
  what: string;
  value: (row: Row, draft: Draft) => unknown;
}

const INPUTS: Given = { name: "inputs", what: "the row’s inputs: every column of a data set", value: (row) => row.inputs ?? {} };
const OUTPUTS: Given = { name: "outputs", what: "what your application answered", value: (row) => row.outputs };
const TRACE: Given = { name: "trace", what: "the spans of your application, or nothing", value: (row) => row.trace ?? undefined };

const CALLS: Record<string, readonly Given[]> = {
  evaluate: [INPUTS, OUTPUTS, TRACE],
  "evaluate-v1": [
    { name: "app_params", what: "always empty", value: () => ({}) },
    INPUTS,
    { ...OUTPUTS, name: "output" },
    { name: "correct_answer", what: "the input of this name", value: (row, draft) => (row.inputs ?? {})[draft.settings.correct_answer_key.trim() || "correct_answer"] },
  ],
};

const RETURNS = [
  { key: "score", what: "a number; 0 to 1 is best", type: "number" },
  { key: "passed", what: "true or false; the threshold then does not count", type: "boolean" },
  { key: "reason", what: "text that explains the score", type: "string" },
  { key: "label", what: "a short text, such as a category", type: "string" },
] as const;

const ENTRY: Record<Draft["language"], RegExp> = {
  python: /^[ \t]*(?:async[ \t]+)?def[ \t]+(evaluate|main)\s*\(([^)]{0,4000})\)/m,
  javascript: /(?:function\s+(evaluate|main)\s*|(?:const|let|var)\s+(?:evaluate|main)\s*=\s*(?:async\s*)?(?:function\s*)?)\(([^)]{0,4000})\)/,
  typescript: /(?:function\s+(evaluate|main)\s*|(?:const|let|var)\s+(?:evaluate|main)\s*=\s*(?:async\s*)?(?:function\s*)?)\(([^)]{0,4000})\)/,
};

/** The names of the entry's parameters in order, and the name of the entry: evaluate or main. */
export function namesOf(code: string, language: Draft["language"]): [{ name: string; optional: boolean }[], string | undefined] {
  const found = ENTRY[language].exec(code);
  const parts = (found?.[2] ?? "").replace(/<[^>]*>|\{[^}]*\}/g, "").split(","); // types may have commas
  const names = parts.map((part) => ({ name: /^\s*\**\s*([A-Za-z_$][\w$]*)/.exec(part)?.[1] ?? "", optional: /^\s*\*|=/.test(part) }));
  return [names.filter(({ name }) => name !== ""), found?.[1]];
}

/** The parameters with their names in the code, and the value of each. */
export function parametersOf(draft: Draft, contract: string | null): Parameter[] {
  const names = namesOf(draft.code, draft.language)[0].map(({ name }) => name);
  const { row } = toRow(draft.row);
  const calls = CALLS[contract ?? "evaluate"];
  if (calls !== undefined) return names.slice(0, calls.length).map((name, at) => ({ name, what: calls[at]!.what, value: calls[at]!.value(row, draft) }));
  const own = row.variables ?? { ...row.inputs, outputs: row.outputs };
  return names.map((name) => ({ name, what: "the variable of this name", value: (own as Record<string, unknown>)[name] }));
}

export function knownOf(draft: Draft, contract: string | null): Known {
  return { python: draft.language === "python", typed: draft.language === "typescript", signature: CALLS[contract ?? "evaluate"] ?? [], parameters: parametersOf(draft, contract), returns: RETURNS };
}
