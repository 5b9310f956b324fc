// Calls a host, using only types that openapi-typescript made from its document; Node runs this after tsc has checked it.
// Argument: the host's URL. The program prints the operations that it called.
import type { paths } from "./schema.ts";

type Method = "get" | "post" | "patch" | "delete";
type Operation<P extends keyof paths, M extends Method> = NonNullable<paths[P][M]>;
type Body<O> = O extends { requestBody: { content: { "application/json": infer B } } } ? B : undefined;
type Good<R> = { [S in keyof R]: S extends 200 | 201 | 202 ? (R[S] extends { content: { "application/json": infer A } } ? A : undefined) : never }[keyof R];
type Answer<O> = O extends { responses: infer R } ? Good<R> : never;
type Named<O> = O extends { parameters: { path: infer N } } ? N : Record<string, never>;

const [, , host] = process.argv;
const called: string[] = [];

async function ask<P extends keyof paths, M extends Method>(method: M, path: P, named: Named<Operation<P, M>>, body?: Body<Operation<P, M>>): Promise<Answer<Operation<P, M>>> {
  const url = host + path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String((named as Record<string, unknown>)[name])));
  const json = body === undefined ? {} : { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
  const answer = await fetch(url, { method: method.toUpperCase(), ...json });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  called.push(`${method} ${path}`);
  return (text === "" ? undefined : JSON.parse(text)) as Answer<Operation<P, M>>;
}

function same<T>(given: T, wanted: T): void {
  if (given !== wanted) throw new Error(`${given} is not ${wanted}`);
}

const code = "def evaluate(inputs, outputs, trace):\n    return outputs == inputs['answer']\n";
const rows = [0, 1].map((answer) => ({ inputs: { answer }, outputs: 1 }));
same((await ask("post", "/v1/evaluate", {}, { evaluator: { code }, ...rows[1] })).score, 1);
same((await ask("post", "/v1/evaluate/batch", {}, { evaluator: { code }, rows })).results.length, 2);
same((await ask("post", "/v1/check", {}, { evaluator: { code } })).ok, true);
same((await ask("post", "/v1/evaluators", {}, { name: "same", code })).version, 1);
same((await ask("get", "/v1/evaluators", {}))[0]?.name, "same");
same((await ask("get", "/v1/evaluators/{name}", { name: "same" })).evaluator.code, code);
const job = await ask("post", "/v1/jobs", {}, { evaluators: ["same"], dataset: { rows } });
let report = job;
while (!["completed", "failed", "cancelled"].includes(report.status)) report = await ask("get", "/v1/jobs/{job_id}", { job_id: job.id });
same(report.status, "completed");
same((await ask("get", "/v1/jobs/{job_id}/results", { job_id: job.id })).evaluators[0]?.scored, 2);
same((await ask("get", "/v1/jobs/{job_id}/rows", { job_id: job.id })).rows[1]?.result.score, 1);
same((await ask("patch", "/v1/jobs/{job_id}", { job_id: job.id }, { name: "first" })).name, "first");
await ask("delete", "/v1/jobs/{job_id}", { job_id: job.id });
await ask("delete", "/v1/evaluators/{name}", { name: "same" });
// @ts-expect-error a field that no request has
void (() => ask("post", "/v1/evaluate", {}, { evaluator: { code }, output: 1 }));
// @ts-expect-error a path without this method
void (() => ask("patch", "/v1/evaluate", {}));
console.log(new Set(called).size, "operations");
