/** Client of Evaluator Host, for Node, Deno, Bun and browsers; no dependencies. */
export { EvaluatorHost } from "./client.js";
export { HostError, HostUnreachable, type Problem } from "./errors.js";
export type { HostOptions, Query, Sent } from "./http.js";
export type { Integers } from "./json.js";
export { isFinal, type ByteStream, type JobOptions, type Jobs } from "./jobs.js";
export type { Datasets, Evaluators, Secrets, StoreOptions } from "./resources.js";
export type * from "./types.js";
