/** Sample data, so that jobs and comparisons can be tried within a minute: a data set, two evaluators, and a job for each. */
import { ApiError, call } from "../api/http";
import type { EvaluatorIn, JobReport } from "../api/types";
import { watchJob } from "./watched-jobs";

const DATASET = "sample-capitals";
const CAPITALS: readonly (readonly [string, string, string | null])[] = [
  ["France", "Paris", "Paris"],
  ["Germany", "Berlin", "The capital of Germany is Berlin."],
  ["Italy", "Rome", "Rome"],
  ["Spain", "Madrid", "Barcelona"],
  ["Japan", "Tokyo", "Tokyo"],
  ["Australia", "Canberra", "Sydney"],
  ["Canada", "Ottawa", "ottawa"],
  ["Brazil", "Brasília", "Brasília"],
  ["Turkey", "Ankara", "Istanbul"],
  ["Kenya", "Nairobi", "Nairobi"],
  ["Norway", "Oslo", "It is Oslo."],
  ["Peru", "Lima", "Lima"],
  ["Egypt", "Cairo", "Cairo"],
  ["India", "New Delhi", "New Delhi"],
  ["Morocco", "Rabat", "Casablanca"],
  ["Switzerland", "Bern", null],
  ["Portugal", "Lisbon", "Lisbon"],
  ["Vietnam", "Hanoi", "Hanoi, in the north of the country."],
  ["South Korea", "Seoul", "Seoul"],
  ["New Zealand", "Wellington", "Auckland"],
  ["Argentina", "Buenos Aires", "Buenos Aires"],
  ["Nigeria", "Abuja", "Lagos"],
  ["Finland", "Helsinki", " Helsinki "],
  ["Ghana", "Accra", "Accra"],
];

const EXACT = `def evaluate(inputs, outputs, trace):
    if outputs is None:
        raise ValueError("this row has no output")
    right = outputs == inputs["correct_answer"]
    return {"score": float(right), "passed": right, "reason": f"{outputs!r} against {inputs['correct_answer']!r}"}
`;
const CONTAINS = EXACT.replace('outputs == inputs["correct_answer"]', 'inputs["correct_answer"].lower() in outputs.lower()');

/** Store the sample data that is missing, and start the jobs; returns the address of the list of jobs. */
export async function loadSamples(): Promise<string> {
  const rows = CAPITALS.map(([country, correct_answer, output]) => JSON.stringify({ question: `What is the capital of ${country}?`, correct_answer, output }));
  await unlessThere(() => call("POST", "/v1/datasets", { raw: `${rows.join("\n")}\n`, contentType: "application/x-ndjson", query: { name: DATASET } }));
  await keep("sample-exact-match", EXACT, "Whether the answer is exactly the expected one");
  await keep("sample-contains", CONTAINS, "Whether the answer contains the expected one");
  for (const evaluators of [["sample-exact-match"], ["sample-exact-match", "sample-contains"]]) watchJob(await call<JobReport>("POST", "/v1/jobs", { body: { evaluators, dataset: DATASET } }));
  return "/jobs";
}

function keep(name: string, code: string, description: string): Promise<unknown> {
  const evaluator: EvaluatorIn = { code, threshold: 0.5 };
  return unlessThere(() => call("POST", "/v1/evaluators", { body: { name, description, ...evaluator } }));
}

async function unlessThere(store: () => Promise<unknown>): Promise<unknown> {
  try {
    return await store();
  } catch (error) {
    if (error instanceof ApiError && error.status === 409) return null;
    throw error;
  }
}
