/** Language servers: the host's for Python, and TypeScript's own, in a worker, for JavaScript and TypeScript. */
import { call } from "../api/http";
import type { EditorAnswer, EvaluatorIn } from "../api/types";

export type Answer = Pick<EditorAnswer, "completions" | "text" | "signatures" | "problems">;
export type What = "completions" | "hover" | "signature" | "problems";

/** A place in a text; line and column count from 1, the offset from 0. */
export interface Place {
  line: number;
  column: number;
  offset: number;
}

export interface LanguageServer {
  ask(what: What, code: string, at: Place, signal?: AbortSignal): Promise<Answer>;
}

/** A question to a worker. */
export interface Question {
  id: number;
  what: What;
  code: string;
  offset: number;
  typed: boolean;
  files: Record<string, string>;
  given: Record<string, string>;
}

export const NOTHING: Answer = { completions: [], text: null, signatures: [], problems: [] };
export const START: Place = { line: 1, column: 1, offset: 0 };
const IDLE_MS = 300_000;

/** The server of an evaluator; `given` has the values of its parameters on the test row. */
export function serverOf(evaluator: EvaluatorIn, given: Record<string, unknown>, typeOf: (value: unknown) => string): LanguageServer {
  if (evaluator.language === "python" || evaluator.language === undefined) {
    const { packages, files, python } = evaluator;
    return {
      ask: (what, code, { line, column }, signal) => call<EditorAnswer>("POST", "/v1/editor", { body: { evaluator: { code, packages, files, python }, what, line, column, given }, signal }),
    };
  }
  const types = Object.fromEntries(Object.entries(given).map(([name, value]) => [name, typeOf(value)]));
  return {
    ask: (what, code, { offset }) => askWorker({ what, code, offset, typed: evaluator.language === "typescript", files: (evaluator.files ?? {}) as Record<string, string>, given: types }),
  };
}

let worker: Worker | null = null;
let address: unknown = null; // kept, because a page may create the policy for a trusted address only once
let waiting = new Map<number, (answer: Answer) => void>();
let last = 0;
let idle: ReturnType<typeof setTimeout> | undefined;

/** Ask the worker; it starts with the first question, and ends five minutes after the last one. */
function askWorker(question: Omit<Question, "id">): Promise<Answer> {
  worker ??= startWorker();
  clearTimeout(idle);
  idle = setTimeout(endWorker, IDLE_MS);
  last += 1;
  const id = last;
  return new Promise((resolve) => {
    waiting.set(id, resolve);
    worker!.postMessage({ id, ...question } satisfies Question);
  });
}

function startWorker(): Worker {
  address ??= window.trustedTypes?.createPolicy("worker", { createScriptURL: () => TYPESCRIPT_WORKER }).createScriptURL("") ?? TYPESCRIPT_WORKER;
  const made = new Worker(address as string);
  made.onmessage = ({ data }: MessageEvent<{ id: number; answer: Answer }>) => {
    waiting.get(data.id)?.(data.answer);
    waiting.delete(data.id);
  };
  made.onerror = endWorker;
  return made;
}

function endWorker(): void {
  worker?.terminate();
  worker = null;
  for (const resolve of waiting.values()) resolve(NOTHING);
  waiting = new Map();
}
