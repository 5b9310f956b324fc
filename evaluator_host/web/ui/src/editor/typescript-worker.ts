/** TypeScript's language service in a worker of its own: answers one question at a time about an evaluator. */
import libraries from "typescript:libraries";
import ts from "typescript";
import type { Answer, Question } from "./language";

const HOME = "/code/";
const LIBRARIES = "/lib/";
const MOST = 1000;
const TEXT_CHARS = 1200;
/** Globals of the sandbox besides those of the language; packages have unknown types. */
const GLOBALS = `
declare const console: { [name in "log" | "info" | "warn" | "error" | "debug" | "table"]: (...values: any[]) => void };
declare function setTimeout(run: (...values: any[]) => void, ms?: number, ...values: any[]): any;
declare function clearTimeout(timer: any): void;
declare function setInterval(run: (...values: any[]) => void, ms?: number, ...values: any[]): any;
declare function clearInterval(timer: any): void;
declare function queueMicrotask(run: () => void): void;
declare function structuredClone<T>(value: T): T;
declare function require(name: string): any;
declare function atob(text: string): string;
declare function btoa(text: string): string;
declare var URL: any, URLSearchParams: any, TextEncoder: any, TextDecoder: any, Buffer: any, crypto: any, performance: any, process: any, module: any, exports: any, fetch: any, AbortController: any, AbortSignal: any, Headers: any, Request: any, Response: any;
declare module "*";
`;
const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2023,
  lib: ["lib.esnext.d.ts"],
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  moduleDetection: ts.ModuleDetectionKind.Force,
  allowJs: true,
  allowImportingTsExtensions: true,
  allowSyntheticDefaultImports: true,
  strict: false,
  noEmit: true,
  types: [],
};
const UNUSED = new Set([6133, 6192, 6196, 6198]);

let texts: Record<string, string> = {};
let version = 0;

const service = ts.createLanguageService({
  getCompilationSettings: () => OPTIONS,
  getScriptFileNames: () => Object.keys(texts),
  getScriptVersion: (name) => (name.startsWith(HOME) ? String(version) : "0"),
  getScriptSnapshot: (name) => {
    const text = read(name);
    return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
  },
  getCurrentDirectory: () => HOME,
  getDefaultLibFileName: () => `${LIBRARIES}lib.esnext.d.ts`,
  fileExists: (name) => read(name) !== undefined,
  readFile: read,
});

function read(name: string): string | undefined {
  return name.startsWith(LIBRARIES) ? libraries[name.slice(LIBRARIES.length)] : texts[name];
}

const ENTRY = /^[ \t]*(?:export\s+(?:default\s+)?)?(?:(?:async\s+)?function\s+(?:evaluate|main)\b|(?:const|let|var)\s+(?:evaluate|main)\s*=)/m;

onmessage = ({ data }: MessageEvent<Question>) => {
  let answer: Answer = { completions: [], text: null, signatures: [], problems: [] };
  try {
    answer = { ...answer, ...answerTo(data) };
  } finally {
    postMessage({ id: data.id, answer });
  }
};

function answerTo({ what, code, offset, typed, files, given }: Question): Partial<Answer> {
  const name = `${HOME}evaluator.${typed ? "ts" : "js"}`;
  const entry = typed ? null : ENTRY.exec(code);
  const types = entry === null ? "" : `/** ${Object.entries(given).map(([parameter, type]) => `@param {${type.replaceAll("*/", "")}} ${parameter}`).join(" ")} */`;
  const at = entry?.index ?? 0;
  version += 1;
  texts = { [`${HOME}globals.d.ts`]: GLOBALS, ...Object.fromEntries(Object.entries(files).map(([path, text]) => [HOME + path, text])), [name]: code.slice(0, at) + types + code.slice(at) };
  const place = offset >= at ? offset + types.length : offset;
  switch (what) {
    case "completions":
      return { completions: (service.getCompletionsAtPosition(name, place, {})?.entries ?? []).filter(({ kindModifiers }) => !kindModifiers?.includes("deprecated")).slice(0, MOST).map((one) => ({ name: one.name, kind: one.kind })) };
    case "hover":
      return { text: hover(name, place) };
    case "signature":
      return { signatures: signatures(name, place) };
    case "problems":
      return { problems: typed ? problems(name) : [] };
  }
}

function hover(name: string, place: number): string | null {
  const found = service.getQuickInfoAtPosition(name, place);
  if (found === undefined) return null;
  return [ts.displayPartsToString(found.displayParts), ts.displayPartsToString(found.documentation)].filter((part) => part !== "").join("\n").slice(0, TEXT_CHARS);
}

function signatures(name: string, place: number): Answer["signatures"] {
  const found = service.getSignatureHelpItems(name, place, {});
  return (found?.items ?? []).slice(0, 3).map((one) => {
    const parameters = one.parameters.map(({ displayParts }) => ts.displayPartsToString(displayParts));
    const text = ts.displayPartsToString(one.prefixDisplayParts) + parameters.join(ts.displayPartsToString(one.separatorDisplayParts)) + ts.displayPartsToString(one.suffixDisplayParts);
    return { text, parameter: one.parameters[found!.argumentIndex]?.name ?? null };
  });
}

/** Type errors only: the host checks the syntax, and unused names are allowed. */
function problems(name: string): Answer["problems"] {
  return service.getSemanticDiagnostics(name).filter(({ code }) => !UNUSED.has(code)).slice(0, 50).map(({ file, start, messageText }) => {
    const { line, character } = file!.getLineAndCharacterOfPosition(start ?? 0);
    return { line: line + 1, column: character + 1, message: ts.flattenDiagnosticMessageText(messageText, "\n") };
  });
}
