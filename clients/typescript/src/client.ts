import { digestHeader, Http, type HostOptions, type Sent } from "./http.js";
import { Jobs } from "./jobs.js";
import { Data, Datasets, Evaluators, Secrets } from "./resources.js";
import type { Batch, CheckReport, Evaluator, HostInfo, Isolation, Migration, MigrationIn, Result, Row, UsageReport } from "./types.js";

/**
 * Client for a running host.
 *
 * Every method throws HostUnreachable if nothing answers, and HostError if the host refuses the request.
 */
export class EvaluatorHost {
  readonly evaluators: Evaluators;
  readonly datasets: Datasets;
  readonly jobs: Jobs;
  readonly secrets: Secrets;
  readonly data: Data;
  readonly #http: Http;

  constructor(options: HostOptions = {}) {
    this.#http = new Http(options);
    this.evaluators = new Evaluators(this.#http);
    this.datasets = new Datasets(this.#http);
    this.jobs = new Jobs(this.#http);
    this.secrets = new Secrets(this.#http);
    this.data = new Data(this.#http);
  }

  /** Evaluate one row. A failure of the evaluator's code is a result with `status: "failed"`. */
  async evaluate(evaluator: Evaluator, row: Row = {}, { signal }: { signal?: AbortSignal } = {}): Promise<Result> {
    const headers = await digestHeader(evaluator);
    return this.#http.json("POST", "/v1/evaluate", { body: { evaluator, ...row }, headers, ...(signal ? { signal } : {}) });
  }

  /**
   * Evaluate rows in one request; results keep their order. `isolation: "batch"` lets rows share a process, for speed.
   * The mean of the `summary` is over `mean_rows`: rows that failed or have no score are left out.
   * The host refuses code that reads outputs if no row has any; `outputs: "none"` says that the rows intentionally have none.
   */
  async evaluateBatch(evaluator: Evaluator, rows: Row[], { isolation = "row", outputs, signal }: { isolation?: Isolation; outputs?: "none"; signal?: AbortSignal } = {}): Promise<Batch> {
    const headers = await digestHeader(evaluator);
    return this.#http.json("POST", "/v1/evaluate/batch", { body: { evaluator, rows, isolation, ...(outputs === undefined ? {} : { outputs }) }, headers, ...(signal ? { signal } : {}) });
  }

  /** Load an evaluator in a sandbox without running a row. */
  async check(evaluator: Evaluator): Promise<CheckReport> {
    return this.#http.json("POST", "/v1/check", { body: { evaluator }, headers: await digestHeader(evaluator) });
  }

  /** Rewrite a legacy evaluator, and prove on rows that its scores stay the same. */
  migrate(migration: MigrationIn): Promise<Migration> {
    return this.#http.json("POST", "/v1/migrate", { body: migration });
  }

  /** Return the host's version, backend and limits. */
  info(): Promise<HostInfo> {
    return this.#http.json("GET", "/v1/info");
  }

  /** Return how many bytes the workspace of the key stores, and how many it may store. */
  usage(): Promise<UsageReport> {
    return this.#http.json("GET", "/v1/usage");
  }

  /** Send a request that has no method of its own: `request("GET", "/v1/schedules")`. Return the JSON in the response. */
  request<T>(method: string, path: string, sent: Sent = {}): Promise<T> {
    return this.#http.json(method, path, sent);
  }

  /** Check that the host can start a sandbox; throw a `HostError` if it cannot. */
  async ready(): Promise<void> {
    await this.#http.send("GET", "/readyz");
  }
}
