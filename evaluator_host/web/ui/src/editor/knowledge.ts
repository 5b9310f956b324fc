/** What the editor knows of an evaluator besides its grammar: what its parameters get, the keys of the test row, what may be returned. */
import { type Completion, type CompletionContext, type CompletionResult, type CompletionSource, completeFromList } from "@codemirror/autocomplete";
import { globalCompletion, localCompletionSource as pythonLocals } from "@codemirror/lang-python";
import { localCompletionSource as scriptLocals, snippets } from "@codemirror/lang-javascript";
import type { Extension } from "@codemirror/state";
import { type EditorView, hoverTooltip, type Tooltip } from "@codemirror/view";

export interface Parameter {
  name: string;
  /** What it is, in words. */
  what: string;
  /** What it is on the test row; undefined when that has none. */
  value: unknown;
}

export interface Known {
  python: boolean;
  parameters: readonly Parameter[];
  /** Keys of a returned object, and what each means. */
  returns: readonly { key: string; what: string }[];
}

const LOOKED_BACK = 400;
const STEP = String.raw`(?:\[["'][^"'\n]*["']\]|\[\d+\]|\.get\(["'][^"'\n]*["'][^()\n]*\)|\??\.\w+)`;
const PATH = new RegExp(String.raw`\b(\w+)(${STEP}*)(\[["']|\.get\(["']|\??\.)(\w*)$`);
const IN_RETURN = /(?:return|=>)\s*\(?\{[^}]*?(["']?)(\w*)$/;
const WORD = /[A-Za-z_]\w*$/;
const SCRIPT_WORDS = "async await break case catch class const continue default else export false finally for function if import in instanceof let new null of return switch this throw true try typeof undefined while Array Boolean Date JSON Map Math Number Object Promise RegExp Set String console isNaN parseFloat parseInt".split(" ");

/** Completion sources of the code: parameters and row keys first, then what the language offers. */
export function codeCompletions(known: () => Known): readonly CompletionSource[] {
  const others: CompletionSource[] = [pythonLocals, globalCompletion];
  const scripts: CompletionSource[] = [scriptLocals, completeFromList([...snippets, ...SCRIPT_WORDS.map((label) => ({ label, type: "keyword" }))])];
  const ofLanguage: CompletionSource = async (context) => merged(context, known().python ? others : scripts, known());
  return [(context) => ownCompletions(context, known()), ofLanguage];
}

/** What the language's own sources offer, without the names of parameters: these are offered already, and first. */
async function merged(context: CompletionContext, sources: readonly CompletionSource[], known: Known): Promise<CompletionResult | null> {
  const before = lookBack(context);
  if (PATH.test(before)) return null;
  const found = (await Promise.all(sources.map((source) => source(context)))).filter((one) => one !== null);
  const first = found[0];
  if (first === undefined) return null;
  const taken = new Set(known.parameters.map(({ name }) => name));
  const options = found.filter((one) => one.from === first.from).flatMap((one) => one.options.filter(({ label }) => !taken.has(label)));
  return { from: first.from, options, validFor: /^\w*$/ };
}

function lookBack(context: CompletionContext): string {
  return context.state.sliceDoc(Math.max(0, context.pos - LOOKED_BACK), context.pos);
}

function ownCompletions(context: CompletionContext, known: Known): CompletionResult | null {
  const before = lookBack(context);
  const path = PATH.exec(before);
  if (path !== null) return keysAt(context, path, known);
  const word = WORD.exec(before)?.[0] ?? "";
  const returned = IN_RETURN.exec(before);
  if (returned !== null && (returned[1] !== "" || !known.python)) {
    const options = known.returns.map(({ key, what }): Completion => ({ label: key, detail: what, type: "property", boost: 90 }));
    return { from: context.pos - (returned[2] ?? "").length, options, validFor: /^\w*$/ };
  }
  if (word === "" && !context.explicit) return null;
  const options = known.parameters.map(({ name, what }): Completion => ({ label: name, detail: what, type: "variable", boost: 99 }));
  return { from: context.pos - word.length, options, validFor: /^\w*$/ };
}

function keysAt(context: CompletionContext, [, name = "", steps = "", opening = "", typed = ""]: RegExpExecArray, known: Known): CompletionResult | null {
  const parameter = known.parameters.find((one) => one.name === name);
  if (parameter === undefined) return null;
  const value = follow(parameter.value, steps);
  if (value === null || typeof value !== "object" || Array.isArray(value)) return null;
  const isDotted = opening.endsWith(".");
  if (isDotted && known.python) return null;
  const keys = Object.entries(value as Record<string, unknown>).filter(([key]) => !isDotted || /^[A-Za-z_$][\w$]*$/.test(key));
  const options = keys.map(([key, of]): Completion => ({ label: key, detail: preview(of, 40), type: "property", boost: 99 }));
  return { from: context.pos - typed.length, options, validFor: /^[\w ]*$/ };
}

/** The value at a path as it is written in code: `["a"].b[0]`, `.get("a")`. */
function follow(value: unknown, steps: string): unknown {
  let at = value;
  for (const [, text, get, index, dotted] of steps.matchAll(/\[["']([^"'\n]*)["']\]|\.get\(["']([^"'\n]*)["'][^()\n]*\)|\[(\d+)\]|\??\.(\w+)/g)) {
    if (at === null || typeof at !== "object") return undefined;
    at = Array.isArray(at) ? at[Number(index)] : (at as Record<string, unknown>)[text ?? get ?? dotted ?? ""];
  }
  return at;
}

function preview(value: unknown, most: number): string {
  const text = JSON.stringify(value) ?? "";
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** What a parameter is and has on the test row, where the pointer rests on it. */
export function parameterHover(known: () => Known): Extension {
  return hoverTooltip((view: EditorView, pos: number): Tooltip | null => {
    const word = view.state.wordAt(pos);
    if (word === null) return null;
    const name = view.state.sliceDoc(word.from, word.to);
    const parameter = known().parameters.find((one) => one.name === name);
    if (parameter === undefined || /["'.]$/.test(view.state.sliceDoc(Math.max(0, word.from - 1), word.from))) return null;
    return {
      pos: word.from,
      end: word.to,
      above: true,
      create: () => {
        const dom = document.createElement("div");
        dom.className = "cm-known";
        const what = dom.appendChild(document.createElement("p"));
        what.textContent = `${parameter.name}: ${parameter.what}`;
        if (parameter.value !== undefined) dom.appendChild(document.createElement("pre")).textContent = preview(parameter.value, 300);
        return { dom };
      },
    };
  });
}
