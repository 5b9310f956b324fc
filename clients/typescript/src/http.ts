import { errorOf, HostUnreachable, type HostError } from "./errors.js";
import { decoded, encoded, type Integers } from "./json.js";

export interface HostOptions {
  /** URL of the host; `http://127.0.0.1:8710` by default. */
  url?: string;
  /** Key made by `evaluator-host keys create`, for a host that requires one. */
  key?: string;
  /** Milliseconds to wait for one response; 600,000 by default. 0 waits for ever. */
  timeoutMs?: number;
  /** How often a request is sent again after `busy` or another 429 or 503 with Retry-After; 3 by default. */
  retries?: number;
  /** How integers beyond 2^53 - 1 in responses are read: as numbers, with a warning on the console if one is rounded (default), as `bigint`, or as strings. */
  integers?: Integers;
  /** Function to use in place of the global `fetch`. */
  fetch?: typeof fetch;
}

/** Parameters by name; each item of a list is sent as a separate parameter. */
export type Query = Record<string, string | number | boolean | readonly (string | number)[] | null | undefined>;

export interface Sent {
  query?: Query;
  /** Body that is sent as JSON. */
  body?: unknown;
  /** Body that is sent unchanged, in place of `body`. */
  raw?: BodyInit;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

const DEFAULT_URL = "http://127.0.0.1:8710";
const LONGEST_PAUSE_S = 10; // longest pause in seconds, even if Retry-After asks for more

/** Return the header with which a load balancer sends an evaluator's calls to one host; no header if there is no Web Crypto. */
export async function digestHeader(evaluator: { code: string } | string): Promise<Record<string, string>> {
  const text = new TextEncoder().encode(typeof evaluator === "string" ? evaluator : evaluator.code);
  const bytes = await globalThis.crypto?.subtle?.digest("SHA-256", text);
  if (bytes === undefined) return {};
  return { "Evaluator-Digest": Array.from(new Uint8Array(bytes, 0, 16), (byte) => byte.toString(16).padStart(2, "0")).join("") };
}

/** Sends requests to one host. */
export class Http {
  readonly url: string;
  readonly #headers: Record<string, string>;
  readonly #timeoutMs: number;
  readonly #retries: number;
  readonly #integers: Integers;
  readonly #fetch: typeof fetch;
  #warned = false;

  constructor({ url = DEFAULT_URL, key, timeoutMs = 600_000, retries = 3, integers = "number", fetch: own }: HostOptions = {}) {
    this.url = url.replace(/\/+$/, "");
    this.#headers = { Accept: "application/json" };
    if (key !== undefined) this.#headers["Authorization"] = `Bearer ${key.trim()}`;
    this.#timeoutMs = timeoutMs;
    this.#retries = retries;
    this.#integers = integers;
    this.#fetch = own ?? ((...given) => fetch(...given));
  }

  /** Send a request and return the JSON in the response; undefined when it is empty. */
  async json<T>(method: string, path: string, sent: Sent = {}): Promise<T> {
    const response = await this.send(method, path, sent);
    const text = await this.#reached(() => response.text());
    return (text === "" ? undefined : this.#decoded(path, text)) as T;
  }

  /**
   * Send a request and return the response.
   * @throws HostError the host refused; HostUnreachable nothing answered.
   */
  async send(method: string, path: string, { query, body, raw, headers, signal }: Sent = {}): Promise<Response> {
    const json: Record<string, string> = body === undefined ? {} : { "Content-Type": "application/json" };
    const init: RequestInit = { method, headers: { ...this.#headers, ...json, ...headers } };
    if (raw !== undefined || body !== undefined) init.body = raw ?? encoded(body);
    for (let left = this.#retries; ; left--) {
      const signals = [...(signal ? [signal] : []), ...(this.#timeoutMs > 0 ? [AbortSignal.timeout(this.#timeoutMs)] : [])];
      if (signals.length > 0) init.signal = AbortSignal.any(signals);
      const response = await this.#reached(() => this.#fetch(this.url + path + queryString(query), init));
      if (response.ok) return response;
      const error = await errorOf(response);
      if (left <= 0 || !passes(error)) throw error;
      await pause(error, signal);
    }
  }

  /** Yield the data of a response's server-sent events. */
  async *events<T>(path: string, signal?: AbortSignal): AsyncGenerator<T, void, undefined> {
    const response = await this.send("GET", path, { headers: { Accept: "text/event-stream" }, ...(signal ? { signal } : {}) });
    if (response.body === null) return;
    const reader = response.body.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array<ArrayBuffer>, string>).getReader();
    try {
      for (let rest = ""; ; ) {
        const { value, done } = await this.#reached(() => reader.read());
        if (done) return;
        const lines = (rest + value).split(/\r?\n/);
        rest = lines.pop() ?? "";
        for (const line of lines) if (line.startsWith("data:")) yield this.#decoded(path, line.slice(5)) as T;
      }
    } finally {
      await reader.cancel().catch(() => undefined);
    }
  }

  #decoded(path: string, text: string): unknown {
    return decoded(text, this.#integers, (digits) => {
      if (this.#warned) return;
      this.#warned = true;
      console.warn(`evaluator-host: a response from ${path} has the integer ${digits}, which a number rounds to ${Number(digits)}, and maybe others; new EvaluatorHost({ integers: "bigint" }) or "text" reads them exactly`);
    });
  }

  async #reached<T>(exchange: () => Promise<T>): Promise<T> {
    try {
      return await exchange();
    } catch (error) {
      const name = error instanceof Error ? error.name : "";
      if (name === "AbortError") throw error;
      if (name === "TimeoutError") throw new HostUnreachable(`${this.url} took longer than the client waits; give the client a larger timeoutMs`);
      throw new HostUnreachable(`nothing answers at ${this.url}; start a host with \`evaluator-host serve\`, or give its URL (${String(cause(error))})`);
    }
  }
}

/** Return a name escaped as one segment of a path. */
export function segment(name: string | number): string {
  return encodeURIComponent(name);
}

function queryString(query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined);
  const pairs = given.flatMap(([name, value]) => [value].flat().map((one) => [name, String(one)]));
  return pairs.length === 0 ? "" : `?${new URLSearchParams(pairs)}`;
}

function passes({ status, retryAfterS }: HostError): boolean {
  return status === 429 || (status === 503 && retryAfterS !== null);
}

function pause({ retryAfterS }: HostError, signal?: AbortSignal): Promise<void> {
  const spread = 0.8 + 0.4 * Math.random(); // random, so that clients do not all retry at the same time
  const ms = Math.min(retryAfterS ?? 1, LONGEST_PAUSE_S) * 1000 * spread;
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
  });
}

function cause(error: unknown): unknown {
  return error instanceof Error && error.cause instanceof Error ? error.cause.message : error;
}
