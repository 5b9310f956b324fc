/** Completion and help from facts about an evaluator: the values of its parameters, the keys of the test row, allowed results. */
import { type Completion, type CompletionContext, type CompletionResult, type CompletionSource, completeFromList, pickedCompletion } from "@codemirror/autocomplete";
import { globalCompletion, localCompletionSource as pythonLocals } from "@codemirror/lang-python";
import { localCompletionSource as scriptLocals, snippets } from "@codemirror/lang-javascript";
import { type EditorState, type Extension, StateEffect, StateField } from "@codemirror/state";
import { EditorView, hoverTooltip, showTooltip, type Tooltip } from "@codemirror/view";
import type { LanguageServer, Place } from "./language";
import { typeOf } from "./types";

export interface Parameter {
  name: string;
  /** Description of the parameter. */
  what: string;
  /** Value on the test row; undefined if the row has none. */
  value: unknown;
}

export interface Known {
  python: boolean;
  /** Whether the language has type annotations. */
  typed: boolean;
  /** Arguments that the contract passes to the function, in order; empty if they depend on the code. */
  signature: readonly { name: string; what: string }[];
  parameters: readonly Parameter[];
  /** Keys of a returned object, each with its meaning. */
  returns: readonly { key: string; what: string; type: string }[];
}

const LOOKED_BACK = 400;
const STEP = String.raw`(?:\[["'][^"'\n]*["']\]|\[\d+\]|\.get\(["'][^"'\n]*["'][^()\n]*\)|\??\.\w+)`;
const PATH = new RegExp(String.raw`\b(\w+)(${STEP}*)(\[["']|\.get\(["']|\??\.)(\w*)$`);
const IN_RETURN = /(?:return|=>)\s*\(?\{[^}]*?(["']?)(\w*)$/;
const WORD = /[A-Za-z_]\w*$/;
const SCRIPT_WORDS = "async await break case catch class const continue default else export false finally for function if import in instanceof let new null of return switch this throw true try typeof undefined while Array Boolean Date JSON Map Math Number Object Promise RegExp Set String console isNaN parseFloat parseInt".split(" ");

type Server = () => LanguageServer | null;

/** Completion sources of the code: parameters and row keys first, then names of the language, then those of packages. */
export function codeCompletions(known: () => Known, server: Server): readonly CompletionSource[] {
  const others: CompletionSource[] = [pythonLocals, globalCompletion];
  const scripts: CompletionSource[] = [scriptLocals, completeFromList([...snippets, ...SCRIPT_WORDS.map((label) => ({ label, type: "keyword" }))])];
  const ofLanguage: CompletionSource = async (context) => merged(context, known().python ? others : scripts, known());
  return [(context) => ownCompletions(context, known()), ofLanguage, (context) => serverCompletions(context, server())];
}

/** The completions from the language's own sources, except names of parameters, which were offered first. */
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

const ATTRIBUTE = /(?:[\w)\]"'`}]\s*\??\.\s*|(?:^|\n)\s*(?:from|import)\s[^\n]*?)(\w*)$/;

/** Names after a dot and in imports, which only a language server knows. */
async function serverCompletions(context: CompletionContext, server: LanguageServer | null): Promise<CompletionResult | null> {
  const found = ATTRIBUTE.exec(lookBack(context));
  if (server === null || found === null || /(^|\D)\d+\.$/.test(found[0])) return null;
  const abort = new AbortController();
  context.addEventListener("abort", () => abort.abort());
  const answer = await server.ask("completions", context.state.doc.toString(), placeOf(context.state, context.pos), abort.signal).catch(() => null);
  if (answer === null || answer.completions.length === 0) return null;
  const options = answer.completions.map(({ name, kind }): Completion => ({ label: name, detail: kind === "name" ? "" : kind, boost: name.startsWith("_") ? -50 : kind === "name" ? -10 : 0 }));
  return { from: context.pos - found[1]!.length, options, validFor: /^\w*$/ };
}

function placeOf(state: EditorState, offset: number): Place {
  const line = state.doc.lineAt(offset);
  return { line: line.number, column: offset - line.from + 1, offset };
}

function lookBack(context: CompletionContext): string {
  return context.state.sliceDoc(Math.max(0, context.pos - LOOKED_BACK), context.pos);
}

function ownCompletions(context: CompletionContext, known: Known): CompletionResult | null {
  const before = lookBack(context);
  const path = PATH.exec(before);
  if (path !== null) return keysAt(context, path, known);
  const types = known.typed ? typesAt(context, before, known) : null;
  if (types !== null) return types;
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
  const options = keys.map(([key, of]): Completion => ({ label: key, detail: preview(of, 40), type: "property", boost: 99, ...(isDotted ? {} : { apply: withClosing(key, opening) }) }));
  return { from: context.pos - typed.length, options, validFor: /^[\w ]*$/ };
}

/** Inserts a key, and moves the cursor past the quote and the bracket with which the editor has already closed it. */
function withClosing(key: string, opening: string): (view: EditorView, completion: Completion, from: number, to: number) => void {
  const closing = opening.includes("[") ? `${opening.at(-1)}]` : "";
  return (view, completion, from, to) => {
    const closed = closing !== "" && view.state.sliceDoc(to, to + closing.length) === closing;
    view.dispatch({ changes: { from, to, insert: key }, selection: { anchor: from + key.length + (closed ? closing.length : 0) }, userEvent: "input.complete", annotations: pickedCompletion.of(completion) });
  };
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

const OF_PARAMETER = /[(,]\s*(\w+)\s*\??:\s*(\w*)$/;
const OF_RETURN = /\)\s*:\s*(\w*)$/;

/** Types of parameters, from their values on the test row, and of allowed results. */
function typesAt(context: CompletionContext, before: string, known: Known): CompletionResult | null {
  const [, name, typed = ""] = OF_PARAMETER.exec(before) ?? [];
  const parameter = known.parameters.find((one) => one.name === name);
  if (parameter !== undefined) {
    const options = [...new Set([typeOf(parameter.value), "Record<string, any>", "any"])].map((label, at): Completion => ({ label, detail: at === 0 ? "as on the test row" : "", type: "type", boost: 99 - at }));
    return { from: context.pos - typed.length, options };
  }
  const returned = OF_RETURN.exec(before);
  if (returned === null) return null;
  const result = `{ ${known.returns.map(({ key, type }, at) => `${key}${at === 0 ? "" : "?"}: ${type}`).join("; ")} }`;
  return { from: context.pos - returned[1]!.length, options: [result, "number", "boolean", `Promise<${result}>`].map((label, at): Completion => ({ label, type: "type", boost: 99 - at })) };
}

function preview(value: unknown, most: number): string {
  const text = JSON.stringify(value) ?? "";
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** Lines of text in a tooltip, followed by a value as code if there is one. */
function told(lines: readonly string[], value?: unknown): HTMLElement {
  const dom = document.createElement("div");
  dom.className = "cm-known";
  for (const line of lines) dom.appendChild(document.createElement("p")).textContent = line;
  if (value !== undefined) dom.appendChild(document.createElement("pre")).textContent = preview(value, 300);
  return dom;
}

function withText(lines: readonly string[], text: string): HTMLElement {
  const dom = told(lines);
  if (text !== "") dom.appendChild(document.createElement("pre")).textContent = text;
  return dom;
}

function callInWords(name: string, { signature, parameters }: Known): string {
  return `${name}(${(signature.length > 0 ? signature : parameters).map((one) => one.name).join(", ")})`;
}

/** Help under the pointer: a parameter with its value on the test row, the call to the function, the meaning of a returned key. */
export function contractHover(known: () => Known, server: Server): Extension {
  return hoverTooltip(async (view: EditorView, pos: number): Promise<Tooltip | null> => {
    const word = view.state.wordAt(pos);
    if (word === null) return null;
    const name = view.state.sliceDoc(word.from, word.to);
    const [before, after] = [view.state.sliceDoc(Math.max(0, word.from - LOOKED_BACK), word.from), view.state.sliceDoc(word.to, word.to + 2)];
    const dom = aboutWord(name, before, after, known()) ?? (await aboutName(view.state, pos, server()));
    return dom === null ? null : { pos: word.from, end: word.to, above: true, create: () => ({ dom }) };
  });
}

async function aboutName(state: EditorState, pos: number, server: LanguageServer | null): Promise<HTMLElement | null> {
  const answer = await server?.ask("hover", state.doc.toString(), placeOf(state, pos)).catch(() => null);
  const [title, ...documentation] = (answer?.text ?? "").split("\n");
  return title ? withText([title], documentation.join("\n").trim()) : null;
}

function aboutWord(name: string, before: string, after: string, known: Known): HTMLElement | null {
  const parameter = known.parameters.find((one) => one.name === name);
  if (parameter !== undefined && !/["'.]$/.test(before)) return told([`${parameter.name}: ${parameter.what}`], parameter.value);
  const returned = known.returns.find((one) => one.key === name);
  if (returned !== undefined && /^["']?\s*:/.test(after) && IN_RETURN.test(before + name)) return told([`${name}: ${returned.what}`]);
  if (!/^(evaluate|main)$/.test(name) || !/(def|function|const|let|var)\s+$/.test(before)) return null;
  const given = known.signature.map((one) => `${one.name}: ${one.what}`);
  return told([callInWords(name, known), ...given, `It returns a number, true or false, or an object with ${known.returns.map(({ key }) => key).join(", ")}.`]);
}

const IN_SIGNATURE = /(?:\b(?:def|function)\s+(evaluate|main)\s*|\b(?:const|let|var)\s+(evaluate|main)\s*=\s*(?:async\s*)?)\(([^()]*)$/;

/** Help while the parameters of the function are written: the arguments of the contract, and the one at the cursor. */
export function signatureHelp(known: () => Known, server: Server): Extension {
  return [contractHelp(known), callHelp(server)];
}

const SHOW = StateEffect.define<Tooltip | null>();
const IN_CALL = /[\w)\]]\([^()]*(?:\([^()]*\)[^()]*)*$/;
const OF_FUNCTION = /\b(?:def|function|class|if|for|while|switch|catch)\s*\w*\s*\([^()]*$/;
const CALL_AFTER_MS = 250;

/** Help while the arguments of another function are written: its signature, from the language server. */
function callHelp(server: Server): Extension {
  const shown = StateField.define<Tooltip | null>({
    create: () => null,
    update: (value, { effects, docChanged, selection }) => effects.reduce((before, one) => (one.is(SHOW) ? one.value : before), docChanged || selection ? null : value),
    provide: (field) => showTooltip.from(field),
  });
  let timer: ReturnType<typeof setTimeout> | undefined;
  const asking = EditorView.updateListener.of(({ view, docChanged, selectionSet }) => {
    if (!docChanged && !selectionSet) return;
    clearTimeout(timer);
    const { state } = view;
    const { head, empty } = state.selection.main;
    const before = state.sliceDoc(Math.max(0, head - LOOKED_BACK), head);
    if (!docChanged || !empty || !IN_CALL.test(before) || OF_FUNCTION.test(before)) return;
    timer = setTimeout(() => void calledAt(state, head, server()).then((tooltip) => tooltip !== null && view.state.doc === state.doc && view.state.selection.main.head === head && view.dispatch({ effects: SHOW.of(tooltip) })), CALL_AFTER_MS);
  });
  return [shown, asking];
}

async function calledAt(state: EditorState, pos: number, server: LanguageServer | null): Promise<Tooltip | null> {
  const answer = await server?.ask("signature", state.doc.toString(), placeOf(state, pos)).catch(() => null);
  const found = answer?.signatures ?? [];
  const parameter = found[0]?.parameter;
  if (found.length === 0) return null;
  return { pos, above: true, create: () => ({ dom: withText(parameter ? [`Parameter ${parameter}`] : [], found.map(({ text }) => text).join("\n")) }) };
}

function contractHelp(known: () => Known): Extension {
  const field: StateField<Tooltip | null> = StateField.define<Tooltip | null>({
    create: () => null,
    update: (value, { state, docChanged, selection }) => (docChanged || selection !== undefined ? helpAt(state, known()) : value),
    provide: (shown) => showTooltip.from(shown),
  });
  return field;
}

function helpAt(state: EditorState, known: Known): Tooltip | null {
  const { head, empty } = state.selection.main;
  const found = empty ? IN_SIGNATURE.exec(state.sliceDoc(Math.max(0, head - LOOKED_BACK), head)) : null;
  if (found === null || known.signature.length === 0) return null;
  const name = found[1] ?? found[2] ?? "";
  const at = (found[3] ?? "").replace(/<[^>]*>|\{[^}]*\}/g, "").split(",").length - 1;
  const own = known.signature[at];
  const lines = [callInWords(name, known), own === undefined ? "The contract passes no other arguments." : `${own.name}: ${own.what}`];
  return { pos: head, above: true, create: () => ({ dom: told(lines) }) };
}
