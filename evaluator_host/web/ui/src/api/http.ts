/** HTTP to the host that served the page: JSON in and out, problem+json as errors, server-sent events. */
import type { Problem, ProblemBody } from "./types";
import { parseExactly } from "../json";
import { keepInTab, recallInTab } from "../storage";
import { lostHost } from "./reachable";

/** The host refused or failed a request; `code` is the stable name of the error, `problems` name the wrong fields. */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly code: string,
    readonly problems: readonly Problem[] = [],
    readonly retryAfterS: number | null = null,
  ) {
    super(message);
    this.name = "ApiError";
  }
}

export interface RequestOptions {
  body?: unknown;
  /** Body to send unchanged, with its own content type, in place of `body`. */
  raw?: Blob | string;
  contentType?: string;
  /** Parameters by name; each item of a list is sent as a parameter of its own. */
  query?: Record<string, string | number | boolean | readonly number[] | null | undefined>;
  signal?: AbortSignal;
}

let key = recallInTab("key");
let askForKey: ((refused: boolean) => Promise<string | null>) | null = null;

/** Set the function that asks the user for a key when the host requires one. */
export function onKeyNeeded(ask: (refused: boolean) => Promise<string | null>): void {
  askForKey = ask;
}

export function setKey(value: string | null): void {
  key = value;
  keepInTab("key", value);
}

export function hasKey(): boolean {
  return key !== null;
}

function withQuery(path: string, query: RequestOptions["query"]): string {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== null && value !== undefined && value !== "");
  if (given.length === 0) return path;
  return `${path}?${new URLSearchParams(given.flatMap(([name, value]) => [value].flat().map((one) => [name, String(one)])))}`;
}

/** Send a request and return the body of the response, with all digits of numbers except scores; undefined when it is empty. */
export async function call<T>(method: string, path: string, options: RequestOptions = {}): Promise<T> {
  const response = await send(method, path, options);
  const text = await response.text();
  return (text === "" ? undefined : parseExactly(text, "score")) as T;
}

/** Send a request and return the response itself, for downloads. */
export async function send(method: string, path: string, options: RequestOptions = {}): Promise<Response> {
  const headers: Record<string, string> = { Accept: "application/json" };
  let body: BodyInit | null = null;
  if (options.raw !== undefined) {
    body = options.raw;
    headers["Content-Type"] = options.contentType ?? "application/octet-stream";
  } else if (options.body !== undefined) {
    body = JSON.stringify(options.body);
    headers["Content-Type"] = "application/json";
  }
  for (;;) {
    const sent = key;
    if (sent !== null) headers["Authorization"] = `Bearer ${sent}`;
    const response = await reach(withQuery(path, options.query), { method, headers, body, signal: options.signal ?? null });
    if (response.ok) return response;
    const error = await problemOf(response);
    if (error.status !== 401 || !(await newKey(sent))) throw error;
  }
}

async function reach(path: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(path, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    lostHost();
    throw new ApiError("The host is not responding. Is it still running?", 0, "host_unreachable");
  }
}

async function problemOf(response: Response): Promise<ApiError> {
  const after = Number(response.headers.get("Retry-After"));
  const wait = Number.isFinite(after) && after > 0 ? after : null;
  try {
    const problem = (await response.json()) as ProblemBody;
    return new ApiError(problem.detail, response.status, problem.code, problem.errors, wait);
  } catch {
    return new ApiError(`The host answered with status ${response.status}.`, response.status, "unknown", [], wait);
  }
}

/** Whether the host gave no answer at all. */
export function isUnreachable(error: unknown): boolean {
  return error instanceof ApiError && error.code === "host_unreachable";
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

export interface HostEvent {
  event: string;
  data: unknown;
}

/** Server-sent events of a route, until the route ends or `signal` aborts. (EventSource could not send a key.) */
export async function* events(path: string, options: Pick<RequestOptions, "signal" | "query"> = {}): AsyncGenerator<HostEvent> {
  const response = await send("GET", path, options);
  if (response.body === null) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      rest += value;
      const blocks = rest.split(/\r?\n\r?\n/);
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const found = parsed(block);
        if (found !== null) yield found;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function parsed(block: string): HostEvent | null {
  let event = "message";
  const data: string[] = [];
  for (const line of block.split(/\r?\n/)) {
    if (line.startsWith("event:")) event = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
  }
  return data.length === 0 ? null : { event, data: JSON.parse(data.join("\n")) };
}

/** Upload a file; `onSent` gets the share that has been sent, from 0 to 1. */
export async function upload<T>(path: string, file: Blob, options: { contentType: string; query?: RequestOptions["query"]; signal?: AbortSignal; onSent: (share: number) => void }): Promise<T> {
  for (;;) {
    const sent = key;
    const answer = await posted(withQuery(path, options.query), file, sent, options);
    if (answer.ok) return (await answer.json()) as T;
    const error = await problemOf(answer);
    if (error.status !== 401 || !(await newKey(sent))) throw error;
  }
}

/** Uploads with XMLHttpRequest, because `fetch` reports no progress. */
function posted(path: string, file: Blob, sent: string | null, { contentType, signal, onSent }: { contentType: string; signal?: AbortSignal; onSent: (share: number) => void }): Promise<Response> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", path);
    request.setRequestHeader("Content-Type", contentType);
    request.setRequestHeader("Accept", "application/json");
    if (sent !== null) request.setRequestHeader("Authorization", `Bearer ${sent}`);
    request.upload.onprogress = (event) => event.lengthComputable && onSent(event.loaded / event.total);
    request.onload = () => resolve(new Response(request.responseText, { status: request.status }));
    request.onerror = () => reject(new ApiError("The host is not responding, or it ended the upload. The file may be too large.", 0, "host_unreachable"));
    request.onabort = () => reject(new DOMException("given up", "AbortError"));
    signal?.addEventListener("abort", () => request.abort());
    request.send(file);
  });
}

/** Ask the user for a new key; return whether the page now has a key that was not refused yet. */
async function newKey(refused: string | null): Promise<boolean> {
  if (key !== refused) return true;
  const given = askForKey === null ? null : await askForKey(refused !== null);
  if (given !== null) setKey(given);
  return given !== null;
}

/** Download the response as a file. */
export async function download(path: string, name: string, query?: RequestOptions["query"]): Promise<void> {
  const response = await send("GET", path, { query });
  saveAs(await response.blob(), name);
}

export function saveAs(contents: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(contents);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
