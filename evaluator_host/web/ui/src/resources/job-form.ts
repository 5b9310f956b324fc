/** The form that starts a job, and the request body made from it. */
import { typedNumber } from "../components/field";
import { readJson } from "../json";
import { type Draft, EMPTY, toEvaluator, withStored } from "../workbench/draft";
import { hasOwnRows } from "./dataset-name";
import type { MappingLine } from "./mapping-advice";
import type { Columns, Contract, EvaluatorIn, JobEvaluator, JobIn, JobReport, Target } from "../api/types";

export interface TargetForm {
  base_url: string;
  model: string;
  secret: string;
  system: string;
  prompt: string;
  /** Messages of the previous job, if it has messages instead of a prompt. */
  messages: Columns[];
  inference: string;
  concurrency: string;
  timeout_s: string;
  retries: string;
}

/** An evaluator with settings that apply only to this job. */
export interface Own {
  draft: Draft;
  /** The stored evaluator; null if the evaluator is not stored. */
  stored: Draft | null;
  contract: Contract | null;
}

export interface JobForm {
  /** References to stored evaluators (`name`, `name@3`), and names of evaluators in `own`. */
  evaluators: readonly string[];
  own: Readonly<Record<string, Own>>;
  dataset: string;
  /** The user's lines; null while the host's suggestion is used. */
  mapping: readonly MappingLine[] | null;
  /** Lines to keep in addition to the lines that the host suggests. */
  mapped: readonly MappingLine[];
  parallelism: string;
  limit: string;
  batch: boolean;
  maxFailures: string;
  name: string;
  /** Whether failed rows count as a score of 0. */
  failuresCount: boolean;
  asksModel: boolean;
  target: TargetForm;
  /** Settings of the job that is run again, for which the form has no fields. */
  kept: Pick<JobReport["config"], "replay" | "budget"> | null;
}

/** A form with its mapping. */
export type JobOrder = JobForm & { mapping: readonly MappingLine[] };

const NO_TARGET: TargetForm = { base_url: "", model: "", secret: "", system: "", prompt: "", messages: [], inference: "", concurrency: "8", timeout_s: "60", retries: "4" };

/** Returns a form with the values of the address; everything else is empty. */
export function newForm(query: URLSearchParams): JobForm {
  const evaluators = query.getAll("evaluator");
  return { evaluators, own: {}, dataset: query.get("dataset") ?? "", mapping: null, mapped: [], parallelism: "", limit: "", batch: false, maxFailures: "", name: query.get("name") ?? "", failuresCount: false, asksModel: false, target: NO_TARGET, kept: null };
}

/** Returns the form that runs a job again; if `mended`, with another mapping, which the host suggests. Evaluators without a name are included as they were. */
export function formOf(job: JobReport, ran: readonly JobEvaluator[], mended: boolean): JobForm {
  const mapped = Object.entries(job.mapping).map(([field, source]) => ({ field, source }));
  const nameOf = ({ label, name }: JobEvaluator) => (name === null ? `${label} (pasted)` : label);
  const text = (value: number | null) => (value === null ? "" : String(value));
  return {
    evaluators: ran.map(nameOf),
    own: Object.fromEntries(ran.filter(({ name }) => name === null).map((one) => [nameOf(one), { draft: withStored(EMPTY, one.evaluator, null), stored: null, contract: null }])),
    dataset: hasOwnRows(job) ? "" : job.dataset_name!,
    mapping: mended ? null : mapped,
    mapped: mapped.filter(({ field, source }) => !(field === "outputs" && source === "none")),
    parallelism: text(job.config.parallelism),
    limit: text(job.config.limit_samples),
    batch: job.config.isolation === "batch",
    maxFailures: text(job.config.max_failures),
    name: job.name ?? "",
    failuresCount: job.config.failures === "zero",
    asksModel: job.target !== null,
    target: job.target === null ? NO_TARGET : targetForm(job.target),
    kept: { replay: job.config.replay, budget: job.config.budget },
  };
}

function targetForm(target: Target): TargetForm {
  return {
    base_url: target.base_url,
    model: target.model,
    secret: target.api_key ?? "",
    system: target.system ?? "",
    prompt: target.prompt_template ?? "",
    messages: target.messages,
    inference: Object.keys(target.inference).length > 0 ? JSON.stringify(target.inference, null, 2) : "",
    concurrency: String(target.concurrency),
    timeout_s: String(target.timeout_s),
    retries: String(target.retries),
  };
}

/** The form with the user's mapping, or with the host's suggestion and earlier lines for other fields. */
export function orderOf(form: JobForm, suggested: readonly MappingLine[]): JobOrder {
  const others = form.mapped.filter(({ field }) => !suggested.some((line) => line.field === field));
  return { ...form, mapping: form.mapping ?? [...suggested, ...others] };
}

/** Returns a message about what is missing or wrong; null when the job can be started. */
export function faultOf(form: JobOrder): string | null {
  if (form.evaluators.length === 0) return "Choose an evaluator.";
  if (form.dataset === "") return "Choose a data set.";
  if (form.mapping.some(({ field, source }) => (field.trim() === "") !== (source.trim() === ""))) return "A line of the mapping lacks its field or its source.";
  for (const reference of form.evaluators) {
    const own = form.own[reference];
    if (own !== undefined && Object.keys(toEvaluator(own.draft).faults).length > 0) return `Fix the settings of ${reference}.`;
  }
  if (!form.asksModel) return null;
  if (form.target.base_url.trim() === "" || form.target.model.trim() === "") return "The model needs a base URL and a name.";
  if (form.target.prompt.trim() === "" && form.target.messages.length === 0) return "The model needs a prompt.";
  const inference = readJson(form.target.inference);
  return inference.ok ? null : `Inference settings: ${inference.message}`;
}

/** Whether the settings differ from those of the stored evaluator. */
export function isChanged(own: Own): boolean {
  return own.stored === null || JSON.stringify(toEvaluator(own.draft).evaluator) !== JSON.stringify(toEvaluator(own.stored).evaluator);
}

/** The evaluator to send with the job for a reference. */
export function evaluatorOf(form: JobForm, reference: string): string | EvaluatorIn {
  const own = form.own[reference];
  return own !== undefined && isChanged(own) ? toEvaluator(own.draft).evaluator : reference;
}

export function jobBody(form: JobOrder): JobIn {
  const config: NonNullable<JobIn["config"]> = {
    parallelism: typedNumber(form.parallelism),
    limit_samples: typedNumber(form.limit),
    isolation: form.batch ? "batch" : "row",
    max_failures: typedNumber(form.maxFailures),
    failures: form.failuresCount ? "zero" : "exclude",
    ...form.kept,
  };
  const mapping = Object.fromEntries(form.mapping.map(({ field, source }) => [field.trim(), source.trim()]).filter(([field, source]) => field && source));
  return { evaluators: form.evaluators.map((reference) => evaluatorOf(form, reference)), name: form.name.trim() === "" ? null : form.name.trim(), dataset: form.dataset, mapping, target: form.asksModel ? targetOf(form.target) : null, config };
}

function targetOf(form: TargetForm): JobIn["target"] {
  const inference = readJson(form.inference);
  const prompt = form.prompt.trim() === "" ? null : form.prompt;
  return {
    base_url: form.base_url.trim(),
    model: form.model.trim(),
    api_key: form.secret === "" ? null : { secret: form.secret },
    prompt_template: prompt,
    messages: prompt === null && form.messages.length > 0 ? form.messages : null,
    system: form.system.trim() === "" ? null : form.system,
    inference: inference.ok && inference.given ? (inference.value as Columns) : {},
    concurrency: typedNumber(form.concurrency) ?? undefined,
    timeout_s: typedNumber(form.timeout_s) ?? undefined,
    retries: typedNumber(form.retries) ?? undefined,
  };
}
