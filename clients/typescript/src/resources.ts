import { segment, type Http } from "./http.js";
import { encoded } from "./json.js";
import type { DataFile, DatasetReport, EvaluatorReport, JsonObject, PastedEvaluator, ScoreHistory, SecretReport, TraceReport, VersionFacts } from "./types.js";

const PAGE_ROWS = 500;
const MEDIA_TYPES: Record<string, string> = {
  jsonl: "application/jsonl",
  json: "application/json",
  csv: "text/csv",
  tsv: "text/tab-separated-values",
  parquet: "application/vnd.apache.parquet",
};

/** How an evaluator is stored. `force` also stores an evaluator that does not load, `require_cases` only one whose cases pass. */
export type StoreOptions = VersionFacts & { force?: boolean; require_cases?: boolean };

/** Evaluators that the host keeps, with their versions. */
export class Evaluators {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  /** Store an evaluator under a name. */
  create(name: string, evaluator: PastedEvaluator, { force, require_cases, ...facts }: StoreOptions = {}): Promise<EvaluatorReport> {
    return this.#http.json("POST", "/v1/evaluators", { query: { force, require_cases }, body: { name, ...facts, ...evaluator } });
  }

  /** Store a new version; description, sampling, tags and cases change only if you give new ones. */
  update(name: string, evaluator: PastedEvaluator, { force, require_cases, ...facts }: StoreOptions = {}): Promise<EvaluatorReport> {
    return this.#http.json("PUT", `/v1/evaluators/${segment(name)}`, { query: { force, require_cases }, body: { ...facts, ...evaluator } });
  }

  list(query: { tag?: string } = {}): Promise<EvaluatorReport[]> {
    return this.#http.json("GET", "/v1/evaluators", { query });
  }

  /** Return a version of an evaluator, by default the newest. */
  get(name: string, version?: number): Promise<EvaluatorReport> {
    return this.#http.json("GET", `/v1/evaluators/${segment(name)}${version === undefined ? "" : `/versions/${version}`}`);
  }

  versions(name: string): Promise<EvaluatorReport[]> {
    return this.#http.json("GET", `/v1/evaluators/${segment(name)}/versions`);
  }

  /** Return an evaluator's results for live traces, newest first. */
  traces(name: string, query: { status?: "scored" | "failed"; limit?: number; before?: number } = {}): Promise<TraceReport[]> {
    return this.#http.json("GET", `/v1/evaluators/${segment(name)}/traces`, { query });
  }

  /** Delete an evaluator; `force` deletes it even if a schedule or an alert uses it. */
  delete(name: string, { force = false }: { force?: boolean } = {}): Promise<void> {
    return this.#http.json("DELETE", `/v1/evaluators/${segment(name)}`, { query: { force } });
  }
}

/** Rows that the host keeps, for jobs. */
export class Datasets {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  /**
   * Store rows under a name.
   * @param data Rows, or a file as a Blob (in Node: `await openAsBlob(path)` of `node:fs`) with `format`.
   * @param options `format` of a file: jsonl (default), json, csv, tsv, parquet; `replace` replaces a data set with that name.
   */
  async upload(name: string, data: Iterable<JsonObject> | AsyncIterable<JsonObject> | Blob, { format = "jsonl", replace = false }: { format?: keyof typeof MEDIA_TYPES; replace?: boolean } = {}): Promise<DatasetReport> {
    const raw = data instanceof Blob ? data : await jsonLines(data);
    const type = MEDIA_TYPES[data instanceof Blob ? format : "jsonl"] ?? "application/octet-stream";
    return this.#http.json("POST", "/v1/datasets", { query: { name, replace }, raw, headers: { "Content-Type": type } });
  }

  list(): Promise<DatasetReport[]> {
    return this.#http.json("GET", "/v1/datasets");
  }

  get(name: string): Promise<DatasetReport> {
    return this.#http.json("GET", `/v1/datasets/${segment(name)}`);
  }

  /** Return the scores of stored evaluators in the newest completed jobs over a data set, the oldest job first. */
  scores(name: string, query: { limit?: number } = {}): Promise<ScoreHistory> {
    return this.#http.json("GET", `/v1/datasets/${segment(name)}/scores`, { query });
  }

  /** Yield the rows of a data set. */
  async *rows(name: string): AsyncGenerator<JsonObject, void, undefined> {
    for (let first = 0; ; first += PAGE_ROWS) {
      const page = await this.#http.json<JsonObject[]>("GET", `/v1/datasets/${segment(name)}/rows`, { query: { first, limit: PAGE_ROWS } });
      yield* page;
      if (page.length < PAGE_ROWS) return;
    }
  }

  /** Delete a data set; `force` deletes it even if a schedule or a label queue uses it. */
  delete(name: string, { force = false }: { force?: boolean } = {}): Promise<void> {
    return this.#http.json("DELETE", `/v1/datasets/${segment(name)}`, { query: { force } });
  }
}

/** Files that evaluators read, by digest: `{ data: { "vocabulary.bin": (await client.data.send(blob)).digest } }`. */
export class Data {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  /** Store a file (in Node: `await openAsBlob(path)` of `node:fs`). */
  send(file: Blob): Promise<DataFile> {
    return this.#http.json("POST", "/v1/data", { raw: file, headers: { "Content-Type": "application/octet-stream" } });
  }

  list(): Promise<DataFile[]> {
    return this.#http.json("GET", "/v1/data");
  }

  get(digest: string): Promise<DataFile> {
    return this.#http.json("GET", `/v1/data/${segment(digest)}`);
  }

  /** Delete a file; `force` deletes it even if an evaluator uses it. */
  delete(digest: string, { force = false }: { force?: boolean } = {}): Promise<void> {
    return this.#http.json("DELETE", `/v1/data/${segment(digest)}`, { query: { force } });
  }
}

/** Keys of models' APIs, which the host keeps encrypted and never shows. */
export class Secrets {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  set(name: string, value: string): Promise<SecretReport> {
    return this.#http.json("PUT", `/v1/secrets/${segment(name)}`, { body: { value } });
  }

  list(): Promise<SecretReport[]> {
    return this.#http.json("GET", "/v1/secrets");
  }

  get(name: string): Promise<SecretReport> {
    return this.#http.json("GET", `/v1/secrets/${segment(name)}`);
  }

  /** Delete a secret; `force` deletes it even if something uses it. */
  delete(name: string, { force = false }: { force?: boolean } = {}): Promise<void> {
    return this.#http.json("DELETE", `/v1/secrets/${segment(name)}`, { query: { force } });
  }
}

async function jsonLines(rows: Iterable<JsonObject> | AsyncIterable<JsonObject>): Promise<Blob> {
  const lines: string[] = [];
  for await (const row of rows) lines.push(`${encoded(row)}\n`);
  return new Blob(lines);
}
