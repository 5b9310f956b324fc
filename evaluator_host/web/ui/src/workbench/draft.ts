/** The draft: an evaluator and a row as typed, and the request made from them. */
import type { Example } from "examples:all";
import { isObject, readJson } from "../json";
import { keep, keepInTab, recall, recallInTab } from "../storage";
import type { EvaluatorIn, EvaluatorReport, Language, Limits, Row, Settings, StoredEvaluator } from "../api/types";
import { rowsOfCases, type TestRow } from "./test-rows";

const ROW_FIELDS = ["inputs", "outputs", "messages", "trace", "variables", "criteria"] as const;
export type RowField = (typeof ROW_FIELDS)[number];
export const LIMITS = ["timeout_s", "memory_mb", "processes", "disk_mb", "log_kb", "result_kb"] as const satisfies readonly (keyof Limits)[];

export interface Draft {
  code: string;
  language: Language;
  contract: string;
  packages: string[];
  /** Contents of the files that come with the code, by path. */
  files: Record<string, string>;
  /** Digests of stored data files, by path. */
  data: Record<string, string>;
  /** Path of the code among its files; null for the default name in the root. */
  path: string | null;
  threshold: string;
  policy: "none" | "restricted";
  /** The minor version of Python that the evaluator needs; null for the host's default. */
  python: string | null;
  /** Limits as typed; an empty string means the host's default. */
  limits: Record<keyof Limits, string>;
  /** Grants of the stored evaluator, kept unchanged. */
  grants?: Pick<StoredEvaluator, "models" | "network" | "secrets" | "budget">;
  settings: { correct_answer_key: string; entry: string; config: string; score_output: string; repair?: boolean; integers?: Settings["integers"] };
  row: Record<RowField, string>;
  /** The rows below the editor. */
  rows: TestRow[];
  /** The stored evaluator that the draft came from, or was saved as. */
  stored: { name: string; version: number } | null;
  /** Id of the example that the code comes from; null once it has been changed. */
  example: string | null;
}

const KEY = "draft";
const NO_LIMITS: Record<keyof Limits, string> = { timeout_s: "", memory_mb: "", processes: "", disk_mb: "", log_kb: "", result_kb: "" };
const NO_SETTINGS: Draft["settings"] = { correct_answer_key: "", entry: "", config: "", score_output: "" };

export const EMPTY: Draft = {
  code: "",
  language: "python",
  contract: "auto",
  packages: [],
  files: {},
  data: {},
  path: null,
  threshold: "",
  policy: "none",
  python: null,
  limits: NO_LIMITS,
  settings: NO_SETTINGS,
  row: { inputs: "", outputs: "", messages: "", trace: "", variables: "", criteria: "" },
  rows: [],
  stored: null,
  example: null,
};

export function fromExample(example: Example, wanted: Language): Draft {
  const language = example.programs[wanted] !== undefined ? wanted : (Object.keys(example.programs)[0] as Language);
  return {
    ...EMPTY,
    code: example.programs[language] ?? "",
    language,
    packages: example.packages[language] ?? [],
    row: rowTexts(example.row),
    example: example.id,
  };
}

/** Return the draft with an opened evaluator and its cases. */
export function opened(draft: Draft, report: EvaluatorReport): Draft {
  const rows = report.cases !== undefined && report.cases.length > 0 ? rowsOfCases(report.cases) : draft.rows;
  return { ...withStored(draft, report.evaluator, { name: report.name, version: report.version }), rows };
}

/** Return the draft with a stored evaluator; the row stays. */
export function withStored(draft: Draft, evaluator: StoredEvaluator, stored: Draft["stored"]): Draft {
  const { settings, limits } = evaluator;
  return {
    ...draft,
    code: evaluator.code,
    language: evaluator.language,
    contract: evaluator.contract,
    packages: [...evaluator.packages],
    files: { ...evaluator.files },
    data: { ...evaluator.data },
    path: evaluator.path ?? null,
    threshold: evaluator.threshold === null ? "" : String(evaluator.threshold),
    policy: evaluator.policy,
    python: evaluator.python,
    limits: Object.fromEntries(LIMITS.map((name) => [name, String(limits[name])])) as Draft["limits"],
    grants: { models: evaluator.models, network: evaluator.network, secrets: evaluator.secrets, budget: evaluator.budget },
    settings: {
      correct_answer_key: settings.correct_answer_key === "correct_answer" ? "" : settings.correct_answer_key,
      entry: settings.entry ?? "",
      config: Object.keys(settings.config).length === 0 ? "" : pretty(settings.config),
      score_output: settings.score_output ?? "",
      repair: settings.repair ?? false,
      integers: settings.integers,
    },
    stored,
    example: null,
  };
}

export function rowTexts(row: Row): Draft["row"] {
  const text = (value: unknown) => (value === undefined || value === null ? "" : pretty(value));
  return { inputs: text(row.inputs), outputs: text(row.outputs), messages: text(row.messages), trace: text(row.trace), variables: text(row.variables), criteria: text(row.criteria) };
}

/** A record of a data set as a row, without a mapping: same rules as evaluator_host/platform/datasets/mapping.py. */
export function rowOfRecord(record: Record<string, unknown>): Row {
  if (isObject(record["inputs"]) || isObject(record["variables"])) return record as Row;
  const outputs = "outputs" in record ? record["outputs"] : record["output"];
  const messages = isConversation(record["messages"]) ? (record["messages"] as Row["messages"]) : null;
  return { inputs: record, outputs, trace: isObject(record["trace"]) ? record["trace"] : null, messages };
}

const OWN: Record<Language, string> = { python: "evaluator.py", javascript: "evaluator.js", typescript: "evaluator.ts" };
const ENDS: Record<string, Language> = { py: "python", js: "javascript", mjs: "javascript", cjs: "javascript", jsx: "javascript", ts: "typescript", mts: "typescript", cts: "typescript", tsx: "typescript" };

/** Path of the code among its files. */
export function ownPath(draft: Draft): string {
  return draft.path ?? OWN[draft.language];
}

/** The language of a file that may be an evaluator; null for any other. */
export function languageOf(path: string): Language | null {
  return ENDS[path.slice(path.lastIndexOf(".") + 1)] ?? null;
}

/** Changes that make one of the files the evaluator, and the former evaluator a file. */
export function withEvaluator(draft: Draft, path: string): Partial<Draft> {
  const { [path]: code = "", ...others } = draft.files;
  const files = draft.code.trim() === "" ? others : { ...others, [ownPath(draft)]: draft.code };
  const language = languageOf(path) ?? draft.language;
  const isOther = (language === "python") !== (draft.language === "python");
  return { code, path, files, language, packages: isOther ? [] : draft.packages, example: null };
}

/** Changes that add files. One of them becomes the evaluator if it has the same text, or if there is no code yet and only this file can be an evaluator. */
export function withDropped(draft: Draft, added: Record<string, string>): Partial<Draft> {
  const files = { ...draft.files, ...added };
  const sources = Object.keys(added).filter((path) => languageOf(path) !== null);
  const isEmpty = draft.code.trim() === "";
  const own = sources.find((path) => !isEmpty && added[path]?.trim() === draft.code.trim()) ?? (isEmpty && sources.length === 1 ? sources[0] : undefined);
  if (own !== undefined) return withEvaluator({ ...draft, files, code: "" }, own);
  return { files, path: Object.hasOwn(files, ownPath(draft)) ? freePath(draft.language, files) : draft.path, example: null };
}

function freePath(language: Language, files: Record<string, string>): string {
  const [stem, end] = OWN[language].split(".");
  for (let number = 1; ; number += 1) {
    const path = number === 1 ? OWN[language] : `${stem}_${number}.${end}`;
    if (!Object.hasOwn(files, path)) return path;
  }
}

/** The errors of a draft, by field. */
export type Faults = Partial<Record<string, string>>;

export function toEvaluator(draft: Draft): { evaluator: EvaluatorIn; faults: Faults } {
  const faults: Faults = {};
  const number = (field: string, text: string): number | null => {
    if (text.trim() === "") return null;
    const value = Number(text);
    if (!Number.isFinite(value)) faults[field] = "This is not a number.";
    return value;
  };
  const limits: Partial<Limits> = {};
  for (const name of LIMITS) {
    const value = number(name, draft.limits[name]);
    if (value !== null) limits[name] = value;
  }
  const settings: Partial<Settings> = {};
  if (draft.settings.correct_answer_key.trim()) settings.correct_answer_key = draft.settings.correct_answer_key.trim();
  if (draft.settings.entry.trim()) settings.entry = draft.settings.entry.trim();
  if (draft.settings.repair) settings.repair = true;
  if (draft.settings.integers && draft.language !== "python") settings.integers = draft.settings.integers;
  if (draft.settings.score_output.trim()) settings.score_output = draft.settings.score_output.trim();
  const config = readJson(draft.settings.config);
  if (!config.ok) faults["config"] = config.message;
  else if (config.given) settings.config = config.value as Record<string, unknown>;
  const threshold = number("threshold", draft.threshold);
  const evaluator: EvaluatorIn = { code: draft.code, language: draft.language };
  if (draft.contract !== "auto") evaluator.contract = draft.contract as NonNullable<EvaluatorIn["contract"]>;
  if (draft.packages.length > 0) evaluator.packages = draft.packages;
  if (Object.keys(draft.files).length > 0) {
    evaluator.files = draft.files;
    if (draft.path !== null) evaluator.path = draft.path;
  }
  if (Object.keys(draft.data).length > 0) evaluator.data = draft.data;
  if (threshold !== null) evaluator.threshold = threshold;
  if (draft.policy !== "none") evaluator.policy = draft.policy;
  if (draft.python !== null && draft.language === "python") evaluator.python = draft.python;
  if (Object.keys(limits).length > 0) evaluator.limits = limits;
  if (Object.keys(settings).length > 0) evaluator.settings = settings;
  const { models = [], network = [], secrets = {}, budget } = draft.grants ?? {};
  if (models.length > 0) evaluator.models = models;
  if (network.length > 0) evaluator.network = network;
  if (Object.keys(secrets).length > 0) evaluator.secrets = secrets;
  if (budget && Object.values(budget).some((most) => most !== null)) evaluator.budget = budget;
  return { evaluator, faults };
}

const OBJECTS: ReadonlySet<RowField> = new Set(["inputs", "trace", "variables"]);

function isConversation(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === "object" && one !== null && "role" in one);
}

export function toRow(texts: Draft["row"]): { row: Row; faults: Faults } {
  const row: Record<string, unknown> = {};
  const faults: Faults = {};
  for (const field of ROW_FIELDS) {
    const read = readJson(texts[field]);
    if (!read.ok) faults[field] = read.message;
    else if (!read.given) continue;
    else if (OBJECTS.has(field) && read.value !== null && (typeof read.value !== "object" || Array.isArray(read.value))) faults[field] = "This must be an object: {…}.";
    else if (field === "messages" && read.value !== null && !isConversation(read.value)) faults[field] = "This must be a list of messages: [{\"role\": …, \"content\": …}].";
    else if (!(OBJECTS.has(field) && read.value === null)) row[field] = read.value;
  }
  return { row: row as Row, faults };
}

/** The draft of this tab, or in a new tab the last one of the browser; null if there is none, or if an earlier version of this page wrote it. */
export function recalled(): Draft | null {
  try {
    return whole(JSON.parse(recallInTab(KEY) ?? recall(KEY) ?? "null"));
  } catch {
    return null;
  }
}

/** A stored draft, with defaults for fields that it lacks. */
export function whole(found: Partial<Draft> | null): Draft | null {
  if (found === null || typeof found.code !== "string" || !Array.isArray(found.packages)) return null;
  return {
    ...EMPTY,
    ...found,
    limits: { ...NO_LIMITS, ...found.limits },
    settings: { ...NO_SETTINGS, ...found.settings },
    row: { ...EMPTY.row, ...found.row },
    rows: Array.isArray(found.rows) ? found.rows : [],
  };
}

/** The evaluator and the row of a draft as one string; two drafts with the same string give the same result. */
export function contentOf(draft: Draft): string {
  return JSON.stringify([toEvaluator(draft).evaluator, toRow(draft.row).row]);
}

const MOST_KEPT = 1_000_000; // maximum characters of a draft; a browser keeps about 5 MB for a site

/** Store the draft for this tab; new tabs begin with it. */
export function keepDraft(draft: Draft): void {
  const text = JSON.stringify(draft);
  // if there is too little space for everything, keep at least the code
  const kept = text.length <= MOST_KEPT ? text : JSON.stringify({ ...draft, row: EMPTY.row, rows: [] });
  keepInTab(KEY, kept);
  keep(KEY, kept);
  keepEarlier(draft);
}

/** An earlier draft with the user's own code, from this tab or another, even a closed one. */
export interface EarlierDraft {
  id: string;
  at: string;
  draft: Draft;
}

const EARLIER = "drafts";
const MOST_EARLIER = 20;
const MOST_EARLIER_TEXT = 1_500_000;
let writing: string | null = null;

/** Begin another draft, and keep the current one among the earlier drafts. */
export function beginDraft(): void {
  writing = crypto.randomUUID?.() ?? String(Math.random());
  keepInTab("drafting", writing);
}

function keepEarlier(draft: Draft): void {
  if (draft.example !== null || draft.code.trim() === "") return;
  writing ??= recallInTab("drafting");
  if (writing === null) beginDraft();
  const own = { id: writing!, at: new Date().toISOString(), draft: JSON.stringify([draft.row, draft.rows]).length > 100_000 ? { ...draft, row: EMPTY.row, rows: [] } : draft };
  const others = earlierDrafts().filter((one) => one.id !== own.id && one.draft.code !== draft.code);
  const all = [own, ...others].slice(0, MOST_EARLIER);
  while (all.length > 1 && JSON.stringify(all).length > MOST_EARLIER_TEXT) all.pop();
  keep(EARLIER, JSON.stringify(all));
}

/** The drafts of this browser, the newest first. */
export function earlierDrafts(): EarlierDraft[] {
  try {
    const found = JSON.parse(recall(EARLIER) ?? "[]") as { id: string; at: string; draft: Partial<Draft> }[];
    return found.flatMap(({ id, at, draft }) => {
      const read = whole(draft);
      return read === null ? [] : [{ id, at, draft: read }];
    });
  } catch {
    return [];
  }
}

function pretty(value: unknown): string {
  return JSON.stringify(value, null, 2);
}
