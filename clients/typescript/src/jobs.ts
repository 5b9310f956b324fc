import { HostError } from "./errors.js";
import { segment, type Http, type Query } from "./http.js";
import { encoded } from "./json.js";
import type { ColumnStatistics, ComparedColumn, Comparison, Evaluator, FailureGroup, JobEvaluatorReport, JobStatistics, JobIn, JobReport, JobRow, JobRowDetail, JobRowPage, JobStatus, JsonObject, Pairs, RowFilters } from "./types.js";

const PAGE_ROWS = 500;
const AGAIN_MS = 1000; // milliseconds between two requests for a job whose events cannot be read

/** How a job runs: the other fields of `POST /v1/jobs`. Fields that are left out have the host's defaults. */
export interface JobOptions extends Partial<Omit<JobIn, "evaluators" | "dataset" | "config">> {
  /** The column of the data set, or the template, for each field of a row: `{ outputs: "answer", correct_answer: "gold" }`. */
  mapping?: Record<string, string>;
  /** A model that produces the outputs first. */
  target?: JobIn["target"];
  /** Name of the job, shown in lists and found by `search`. */
  name?: JobIn["name"];
  config?: Partial<NonNullable<JobIn["config"]>>;
  /** A repeated call with the same key returns the job that the first call made. */
  idempotencyKey?: string;
}

/** A stream of bytes. It is declared as iterable here, because TypeScript's `dom` library does not declare this. */
export type ByteStream = ReadableStream<Uint8Array> & AsyncIterable<Uint8Array>;

/** Jobs, which run evaluators over data sets. */
export class Jobs {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  /**
   * Start a job.
   * @param evaluators Evaluators with their code, or names of stored evaluators.
   * @param dataset Name of a data set, rows, or an eval set.
   */
  create(evaluators: Evaluator[], dataset: JobIn["dataset"] | JsonObject[], { idempotencyKey, ...more }: JobOptions = {}): Promise<JobReport> {
    const body = { evaluators, dataset: Array.isArray(dataset) ? { rows: dataset } : dataset, ...more };
    return this.#http.json("POST", "/v1/jobs", { body, headers: idempotencyKey === undefined ? {} : { "Idempotency-Key": idempotencyKey } });
  }

  /** Return jobs, newest first; `search` finds a text in their names, data sets and evaluators. */
  list(query: { status?: JobStatus; search?: string; limit?: number; before?: string } = {}): Promise<JobReport[]> {
    return this.#http.json("GET", "/v1/jobs", { query });
  }

  /** Give a job another name; null removes the name. */
  rename(id: string, name: string | null): Promise<JobReport> {
    return this.#http.json("PATCH", path(id), { body: { name } });
  }

  get(id: string): Promise<JobReport> {
    return this.#http.json("GET", path(id));
  }

  /** Yield the job whenever it changes, until it has ended. A broken connection is opened again. */
  async *watch(id: string, signal?: AbortSignal): AsyncGenerator<JobReport, void, undefined> {
    for (let last = ""; ; ) {
      let came = false;
      try {
        for await (const report of this.#http.events<JobReport>(path(id, "events"), signal)) {
          if (isFinal(report.status)) break;
          came = true;
          last = encoded(report);
          yield report;
        }
      } catch (error) {
        if (!(error instanceof HostError)) throw error; // the request below throws the error again, unless only the connection broke
      }
      const report = await this.get(id);
      if (encoded(report) !== last) yield report;
      if (isFinal(report.status)) return;
      last = encoded(report);
      if (!came) await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }

  /** Wait until the job has ended, and return it. */
  async wait(id: string, onProgress?: (report: JobReport) => void, signal?: AbortSignal): Promise<JobReport> {
    for await (const report of this.watch(id, signal)) {
      onProgress?.(report);
      if (isFinal(report.status)) return report;
    }
    return this.get(id);
  }

  pause(id: string): Promise<JobReport> {
    return this.#http.json("POST", path(id, "pause"));
  }

  resume(id: string): Promise<JobReport> {
    return this.#http.json("POST", path(id, "resume"));
  }

  cancel(id: string): Promise<JobReport> {
    return this.#http.json("POST", path(id, "cancel"));
  }

  /** Delete a job that has ended, with its results; `force` deletes it even if an alert or a label queue uses it. */
  delete(id: string, { force = false }: { force?: boolean } = {}): Promise<void> {
    return this.#http.json("DELETE", path(id), { query: { force } });
  }

  /** Return the statistics of a job: mean, pass rate, percentiles, failures. */
  results(id: string): Promise<JobStatistics> {
    return this.#http.json("GET", path(id, "results"));
  }

  /** Return mean, pass rate and counts for each value of a column: `groups(id, "topic")`. */
  groups(id: string, by: string, query: { evaluator?: string } = {}): Promise<ColumnStatistics[]> {
    return this.#http.json("GET", path(id, "groups"), { query: { by, ...query } });
  }

  /** Yield the rows that pass the filters, with their results. */
  async *rows(id: string, filters: RowFilters = {}): AsyncGenerator<JobRow, void, undefined> {
    for (let cursor: string | null = null; ; ) {
      const page: JobRowPage = await this.#http.json("GET", path(id, "rows"), { query: { ...filters, cursor, limit: PAGE_ROWS } as Query });
      yield* page.rows;
      cursor = page.next_cursor;
      if (cursor === null) return;
    }
  }

  /** Return how many results match, without reading them; each row has a result from each evaluator. `text` and `where` do not count. */
  async countRows(id: string, filters: Omit<RowFilters, "text" | "where" | "sort"> = {}): Promise<number> {
    const page: JobRowPage = await this.#http.json("GET", path(id, "rows"), { query: { ...filters, total: true, limit: 1, brief: true } });
    return page.total ?? 0;
  }

  /** Return one row with the results of every evaluator. */
  row(id: string, index: number): Promise<JobRowDetail> {
    return this.#http.json("GET", path(id, `rows/${index}`));
  }

  failures(id: string, query: { evaluator?: string } = {}): Promise<FailureGroup[]> {
    return this.#http.json("GET", path(id, "failures"), { query });
  }

  evaluators(id: string): Promise<JobEvaluatorReport[]> {
    return this.#http.json("GET", path(id, "evaluators"));
  }

  /**
   * Compare a job with a later job (`other`) over the same rows. If the jobs have no evaluator in common, `by_place`
   * compares the first evaluator of each job, then the second of each, and so on.
   */
  compare(id: string, other: string, query: { evaluator?: string; by_place?: boolean } = {}): Promise<Comparison[]> {
    return this.#http.json("GET", path(id, `compare/${segment(other)}`), { query });
  }

  /** Compare a metric with a later job for each of the first 50 values of a column: `compareGroups(id, other, "topic")`. */
  compareGroups(id: string, other: string, by: string, query: { evaluator?: string; metric?: string; by_place?: boolean } = {}): Promise<ComparedColumn[]> {
    return this.#http.json("GET", path(id, `compare/${segment(other)}/groups`), { query: { by, ...query } });
  }

  pairs(id: string, other: string, query: { evaluator?: string; metric?: string; by_place?: boolean } = {}): Promise<Pairs> {
    return this.#http.json("GET", path(id, `compare/${segment(other)}/pairs`), { query });
  }

  /** Return the rows that pass the filters, from row `first` on, as a file: a stream of bytes, which Node's `writeFile` accepts. */
  async download(id: string, format: "jsonl" | "csv" | "parquet" = "jsonl", filters: Omit<RowFilters, "sort"> & { first?: number } = {}): Promise<ByteStream> {
    const response = await this.#http.send("GET", path(id, `rows.${format}`), { query: { ...filters } });
    return (response.body ?? new Blob([]).stream()) as ByteStream;
  }
}

/** Whether a job with this status has ended. */
export function isFinal(status: JobStatus): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

function path(id: string, rest = ""): string {
  return `/v1/jobs/${segment(id)}${rest && `/${rest}`}`;
}
