import { useEffect, useState } from "preact/hooks";
import { call } from "../api/http";
import { Button } from "../components/button";
import { Empty } from "../components/empty";
import { ErrorNote } from "../components/error-note";
import { Field, Select } from "../components/field";
import { Spinner } from "../components/spinner";
import { useLoaded } from "../components/use-loaded";
import { EvaluatorChoice } from "../resources/evaluator-choice";
import { hasOwnRows, isReplaced } from "../resources/dataset-name";
import { counted, shortId } from "../resources/format";
import { evaluatorOf, faultOf, formOf, newForm, jobBody, orderOf, type JobForm, type Own } from "../resources/job-form";
import { useAdvice } from "../resources/mapping-advice";
import { MappingFields } from "../resources/mapping-fields";
import { OwnSettings } from "../resources/own-settings";
import { PageHead, Panel } from "../resources/parts";
import { SampleButton } from "../resources/sample-button";
import { ScheduleDialog } from "../schedules/schedule-dialog";
import { TargetFields } from "../resources/target-fields";
import type { Columns, DatasetReport, EvaluatorReport, JobEvaluator, JobReport } from "../api/types";
import { Value } from "../resources/value";
import { watchJob } from "../resources/watched-jobs";
import { useHas } from "../host";
import { Link, navigate } from "../router";
import type { PageProps } from "../routes";

/** Start a job; `?from=JOB` fills the form with the values of that job, `&mend=mapping` with a new mapping, `?schedule=1` makes a schedule. */
export default function NewJobPage({ query }: PageProps) {
  const from = query.get("from");
  const scheduled = query.has("schedule");
  const earlier = useLoaded((signal) => (from === null ? Promise.resolve(null) : earlierJob(from, signal)), [from]);
  const evaluators = useLoaded((signal) => call<EvaluatorReport[]>("GET", "/v1/evaluators", { signal }), []);
  const datasets = useLoaded((signal) => call<DatasetReport[]>("GET", "/v1/datasets", { signal }), []);
  const error = earlier.error ?? evaluators.error ?? datasets.error;
  const ready = evaluators.value !== null && datasets.value !== null && !earlier.loading;
  return (
    <div class="page">
      <PageHead title={scheduled ? "New schedule" : from === null ? "Start a job" : `Run job ${shortId(from)} again`} up={scheduled ? { to: "/schedules", label: "Schedules" } : { to: "/jobs", label: "Jobs" }} />
      {error !== null && <ErrorNote error={error} />}
      {!ready && error === null && <Spinner label="Loading evaluators and data sets" />}
      {ready && evaluators.value!.length === 0 && datasets.value!.length === 0 && (
        <Empty title="A job needs an evaluator and a data set">
          <p>Store both, or try it with sample data.</p>
          <SampleButton onLoaded={() => navigate("/jobs")} />
        </Empty>
      )}
      {ready && earlier.value !== null && <Rows job={earlier.value.job} />}
      {ready && <Form start={earlier.value === null ? newForm(query) : formOf(earlier.value.job, earlier.value.ran, query.get("mend") === "mapping")} evaluators={evaluators.value!} datasets={datasets.value!} scheduled={scheduled} />}
    </div>
  );
}

async function earlierJob(id: string, signal: AbortSignal): Promise<{ job: JobReport; ran: JobEvaluator[] }> {
  const path = `/v1/jobs/${encodeURIComponent(id)}`;
  const [job, ran] = await Promise.all([call<JobReport>("GET", path, { signal }), call<JobEvaluator[]>("GET", `${path}/evaluators`, { signal })]);
  return { job, ran };
}

/** A note about the rows of the earlier job, if the new job does not use the same rows. */
function Rows({ job }: { job: JobReport }) {
  const name = job.dataset_name;
  if (isReplaced(job)) {
    return (
      <p class="note note-info">
        {name} has been replaced since: this job will use version {job.dataset_newest}; the earlier job used version {job.dataset_version}.
      </p>
    );
  }
  if (!hasOwnRows(job)) return null;
  return <p class="note note-warn">{name === null ? "The earlier job had its own rows, which are not in a stored data set." : `${name} has been deleted since.`} Choose a data set.</p>;
}

interface FormProps {
  start: JobForm;
  evaluators: readonly EvaluatorReport[];
  datasets: readonly DatasetReport[];
  /** Whether the form is for a schedule. If it is also complete, it asks for the times immediately. */
  scheduled: boolean;
}

function Form({ start: given, evaluators, datasets, scheduled }: FormProps) {
  const has = useHas();
  const [form, setForm] = useState(given);
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState<unknown>(null);
  const change = (changes: Partial<JobForm>) => {
    setForm((before) => ({ ...before, ...changes }));
    setFault(null);
  };
  const changeOwn = (reference: string, own: Own) => {
    setForm((before) => ({ ...before, own: { ...before.own, [reference]: own } }));
    setFault(null);
  };
  const dataset = datasets.find((one) => one.name === form.dataset);
  const columns = dataset?.columns ?? [];
  const references = form.evaluators.map((reference) => (form.own[reference]?.stored === null ? evaluatorOf(form, reference) : reference));
  const { reads, outputs, mapping, asking } = useAdvice(references, dataset?.name ?? null, form.asksModel, form.evaluators.map((one) => one.replace(/@[^@]*$/, "")));
  const order = orderOf(form, mapping);
  const [scheduling, setScheduling] = useState(scheduled && faultOf(order) === null);
  const schedule = () => {
    const wrong = faultOf(order);
    setFault(wrong);
    setScheduling(wrong === null);
  };
  const start = async () => {
    const wrong = faultOf(order);
    setFault(wrong);
    if (wrong !== null) return;
    setBusy(true);
    try {
      const job = await call<JobReport>("POST", "/v1/jobs", { body: jobBody(order) });
      watchJob(job);
      navigate(`/jobs/${job.id}`);
    } catch (problem) {
      setFault(problem);
      setBusy(false);
    }
  };
  return (
    <>
    <form
      class="record-columns"
      onSubmit={(event) => {
        event.preventDefault();
        if (scheduled) schedule();
        else void start();
      }}
      noValidate
    >
      <div class="record-main stack">
        <Panel title="Evaluators">
          <EvaluatorChoice evaluators={evaluators} chosen={form.evaluators} onChosen={(chosen) => change({ evaluators: chosen, own: Object.fromEntries(Object.entries(form.own).filter(([reference]) => chosen.includes(reference))) })} />
          <OwnSettings chosen={form.evaluators} own={form.own} refused={fault} onOwn={changeOwn} />
        </Panel>
        <Panel title="Data set">
          <DatasetFields form={form} datasets={datasets} onChange={change} />
        </Panel>
        <Panel title="Mapping">
          <MappingFields mapping={order.mapping} columns={columns} reads={dataset ? reads : []} isSuggested={form.mapping === null && mapping.length > 0} outputs={outputs} onMapping={(mapping) => change({ mapping })} />
        </Panel>
        <Panel title="Model">
          <TargetFields form={form} onChange={change} />
        </Panel>
      </div>
      <div class="record-side stack">
        {dataset && <FirstRow dataset={dataset} />}
        <Panel title="Execution">
          <Pace form={form} onChange={change} />
        </Panel>
        {fault !== null && <ErrorNote title="The job cannot start yet" error={fault} />}
        <div class="job-start line">
          <Button kind="primary" type="submit" busy={busy} disabled={form.mapping === null && asking}>
            {scheduled ? "Run at fixed times…" : "Start the job"}
          </Button>
          {!scheduled && has("schedules") && <Button onClick={schedule}>Run at fixed times…</Button>}
        </div>
      </div>
    </form>
    {scheduling && <ScheduleDialog job={jobBody(order)} suggested={form.name.trim() || form.dataset} onClose={() => setScheduling(false)} />}
    </>
  );
}

function DatasetFields({ form, datasets, onChange }: { form: JobForm; datasets: readonly DatasetReport[]; onChange: (changes: Partial<JobForm>) => void }) {
  if (datasets.length === 0) {
    return (
      <p class="muted">
        There is no data set yet: <Link to="/datasets">upload one</Link>.
      </p>
    );
  }
  const known = datasets.some((one) => one.name === form.dataset);
  const options = [
    ...(known ? [] : [{ value: form.dataset, label: form.dataset === "" ? "Choose one…" : `${form.dataset} (deleted)` }]),
    ...datasets.map((one) => ({ value: one.name, label: `${one.name}, ${counted(one.rows, "row")}` })),
  ];
  return (
    <div class="field-row line">
      <Select label="Data set" value={form.dataset} options={options} onValue={(dataset) => onChange({ dataset })} />
      <Field label="First N rows" type="number" min={1} placeholder="All rows" value={form.limit} onValue={(limit) => onChange({ limit })} />
    </div>
  );
}

function Pace({ form, onChange }: { form: JobForm; onChange: (changes: Partial<JobForm>) => void }) {
  return (
    <div class="stack">
      <Field label="Name" value={form.name} placeholder="Evaluators · data set · day" autocomplete="off" onValue={(name) => onChange({ name })} />
      <Field label="Parallelism" type="number" min={1} max={1024} placeholder="Automatic" value={form.parallelism} onValue={(parallelism) => onChange({ parallelism })} />
      <Field label="Maximum failed results" type="number" min={0} placeholder="No limit" value={form.maxFailures} onValue={(maxFailures) => onChange({ maxFailures })} />
      <label class="check">
        <input type="checkbox" checked={form.failuresCount} onChange={(event) => onChange({ failuresCount: event.currentTarget.checked })} />
        <span>
          Failed rows count as 0 <span class="muted">(otherwise they are left out of the mean)</span>
        </span>
      </label>
      <label class="check">
        <input type="checkbox" checked={form.batch} onChange={(event) => onChange({ batch: event.currentTarget.checked })} />
        <span>
          Share a process between rows <span class="muted">(faster; state can leak from row to row)</span>
        </span>
      </label>
    </div>
  );
}

/** A preview of the columns that the mapping can use. */
function FirstRow({ dataset }: { dataset: DatasetReport }) {
  const [row, setRow] = useState<Columns | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    const asked = call<Columns[]>("GET", `/v1/datasets/${encodeURIComponent(dataset.name)}/rows`, { query: { limit: 1 }, signal: abort.signal });
    // the row is only shown, so a failure does not matter
    asked.then(([first]) => setRow(first ?? null), () => undefined);
    return () => abort.abort();
  }, [dataset.name]);
  if (row === null) return null;
  return (
    <Panel title="Preview of the first row">
      <Value label="First row" value={row} />
    </Panel>
  );
}
