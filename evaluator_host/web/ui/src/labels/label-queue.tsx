import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { call } from "../api/http";
import { Button } from "../components/button";
import { ErrorNote } from "../components/error-note";
import { Field, Select, TextArea } from "../components/field";
import { Spinner } from "../components/spinner";
import { Table } from "../components/table";
import { toast } from "../components/toasts";
import { useLoaded } from "../components/use-loaded";
import { QueueAgreement } from "../resources/agreement";
import { Confirm } from "../resources/confirm";
import { count, oneLine, ROW_HEADING, titleAmong } from "../resources/format";
import { choicesOf, type LabelChoice } from "./label-choices";
import { NotThere } from "../resources/not-there";
import { PageHead, Panel, Segments, When } from "../resources/parts";
import { QueueProgress } from "./queue-progress";
import { ResultView } from "../resources/result-view";
import { idOf } from "../resources/row-parts";
import { SpanTree } from "../resources/span-tree";
import { Value } from "../resources/value";
import type { DatasetReport, JobReport, LabelPage, LabelQueue, LabelRow } from "../api/types";
import { navigate, setQuery } from "../router";
import type { PageProps } from "../routes";
import { keep, recall } from "../storage";
import { QueueSource } from "./labels";

type Tab = "label" | "rows" | "agreement";

const TABS: readonly { value: Tab; label: string }[] = [
  { value: "label", label: "Label" },
  { value: "rows", label: "Rows" },
  { value: "agreement", label: "Agreement" },
];
const PERSON = "labeller";
const PAGE = 100;

/** A label queue: its rows one at a time, to label with keys; the labelled rows; the agreement of evaluators. */
export default function LabelQueuePage({ params, query }: PageProps) {
  const name = params["name"] ?? "";
  const route = `/v1/label-queues/${encodeURIComponent(name)}`;
  const found = useLoaded((signal) => call<LabelQueue>("GET", route, { signal }), [name]);
  const [changed, setChanged] = useState<LabelQueue | null>(null);
  const queue = changed ?? found.value;
  const tab = TABS.find((one) => one.value === query.get("tab"))?.value ?? "label";
  const remove = async () => {
    await call("DELETE", route);
    toast(`${name} was deleted`);
    navigate("/labels");
  };
  return (
    <div class="page">
      <PageHead title={name} up={{ to: "/labels", label: "Review" }} mark={queue && <span class="muted">rows of <QueueSource queue={queue} /></span>}>
        <Segments label="What to show" value={tab} options={TABS} onValue={(value) => setQuery({ tab: value === "label" ? null : value })} />
        {queue && (
          <Confirm label="Delete" title={`Delete ${name}?`} onConfirm={remove}>
            Its {count(queue.labelled)} labels are deleted. The rows and the job stay.
          </Confirm>
        )}
      </PageHead>
      {found.error !== null && <NotThere error={found.error} onRetry={found.reload} list={{ to: "/labels", label: "All label queues" }} />}
      {queue === null && found.loading && <Spinner label="Loading the queue" />}
      {queue && (
        <>
          <QueueProgress queue={queue} />
          {tab === "label" && <Labelling queue={queue} route={route} at={query.get("row")} onChanged={setChanged} />}
          {tab === "rows" && <LabelledRows route={route} state={query.get("state")} stamp={`${queue.labelled} ${queue.skipped}`} />}
          {tab === "agreement" && <AgreementOf queue={queue} />}
        </>
      )}
    </div>
  );
}

interface LabellingProps {
  queue: LabelQueue;
  route: string;
  /** The number of the row in the address; null for the next row to label. */
  at: string | null;
  onChanged: (queue: LabelQueue) => void;
}

function Labelling({ queue, route, at, onChanged }: LabellingProps) {
  const [by, setBy] = useState(() => recall(PERSON) ?? "");
  const [seen, setSeen] = useState<readonly number[]>([]);
  const [turn, setTurn] = useState(0);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const [said, setSaid] = useState("");
  const person = by.trim() === "" ? {} : { by: by.trim() };
  const load = async (signal: AbortSignal): Promise<LabelRow | null> => {
    if (at !== null) return call<LabelRow>("GET", `${route}/rows/${Number(at) || 0}`, { signal });
    const next = await call<LabelRow | undefined>("POST", `${route}/next`, { signal, body: person });
    return next ?? null;
  };
  const found = useLoaded(load, [route, at, turn]);
  const dataset = useLoaded((signal) => (queue.job === null ? call<DatasetReport>("GET", `/v1/datasets/${encodeURIComponent(queue.dataset_id)}`, { signal }) : Promise.resolve(null)), [queue.dataset_id]);
  const row = found.value;
  // The comment is kept with the number of its row, so that it is never sent for
  // another row.
  const [written, setWritten] = useState<{ row: number; note: string } | null>(null);
  const note = row !== null && written?.row === row.index ? written.note : (row?.note ?? "");
  useEffect(() => {
    if (row !== null && !seen.includes(row.index)) setSeen([...seen, row.index]);
  }, [row?.index]);
  // With the row on the screen, since a key may come before the effect has added it.
  const known = row === null || seen.includes(row.index) ? seen : [...seen, row.index];
  const place = row === null ? known.length : known.indexOf(row.index);
  const before = known[place - 1];
  const after = known[place + 1];
  const go = (index: number | undefined) => {
    setError(null);
    if (index !== undefined) return setQuery({ row: String(index) });
    if (at !== null) setQuery({ row: null });
    else setTurn((one) => one + 1);
  };
  // This is true from a label until the next row is shown, because a key in between would label an unseen row.
  const locked = useRef(false);
  useLayoutEffect(() => {
    if (!found.loading) locked.current = false;
  }, [found.value, found.loading]);
  const send = async (body: Record<string, unknown>, words: string) => {
    if (row === null || locked.current || found.loading) return;
    locked.current = true;
    setBusy(true);
    setError(null);
    try {
      onChanged(await call<LabelQueue>("PUT", `${route}/rows/${row.index}`, { body: { ...body, ...person, note } }));
      setSaid(`Row ${row.index}: ${words}`);
      if (body["label"] === null) setTurn((one) => one + 1);
      else go(after);
    } catch (fault) {
      locked.current = false;
      setError(fault);
    }
    setBusy(false);
  };
  const choices = choicesOf(queue.task);
  const verbs = {
    label: (choice: { label: string; value: LabelChoice["value"] }) => void send({ label: choice.value }, choice.label),
    skip: () => void send({ skip: true }, "skipped"),
    undo: () => row !== null && row.state !== "waiting" && void send({ label: null }, "waits again"),
    next: () => go(after),
    previous: () => before !== undefined && go(before),
  };
  useLabelKeys(choices, verbs);
  if (found.error !== null) return <ErrorNote error={found.error} onRetry={found.reload} />;
  if (row === null && found.loading) return <Spinner label="Loading the row" />;
  return (
    <div class="record-columns label-columns">
      <div class={found.loading ? "record-main stack rows-busy" : "record-main stack"}>
        {row === null ? <AllDone queue={queue} onBack={before === undefined ? null : verbs.previous} /> : (
          <>
            <RowToLabel row={row} outputs={dataset.value?.outputs_column ?? null} />
            <div class="panel label-bar stack">
              <Choices queue={queue} row={row} choices={choices} busy={busy} verbs={verbs} />
              {error !== null && <ErrorNote error={error} />}
            </div>
          </>
        )}
      </div>
      <div class="record-side stack">
        {queue.task.instructions !== "" && (
          <Panel title="Instructions">
            <p class="pre-wrap wrap">{queue.task.instructions}</p>
          </Panel>
        )}
        {row !== null && (
          <Panel title="Comment" class="panel-stack">
            <TextArea bare label="Comment" rows={2} value={note} onValue={(text) => setWritten({ row: row.index, note: text })} class="label-note" hint="Stored with the label." />
            <div class="page-actions line">
              <Button small disabled={before === undefined} aria-keyshortcuts="k" onClick={verbs.previous}>
                ‹ Back <kbd>k</kbd>
              </Button>
              <Button small aria-keyshortcuts="j" onClick={verbs.next} disabled={after === undefined && row.state === "waiting"}>
                Next <kbd>j</kbd>
              </Button>
              {row.state !== "waiting" && (
                <Button small aria-keyshortcuts="u" onClick={verbs.undo}>
                  Undo <kbd>u</kbd>
                </Button>
              )}
            </div>
          </Panel>
        )}
        {row?.results.map((one) => (
          <Panel key={one.evaluator} title={one.evaluator}>
            <ResultView result={one.result} />
          </Panel>
        ))}
        <Field label="Your name" value={by} onValue={(value) => (setBy(value), keep(PERSON, value.trim() || null))} autocomplete="off" hint="Stored with your labels. On a host with keys, this is the name of your key." />
      </div>
      <p class="visually-hidden" role="status">
        {said}
      </p>
    </div>
  );
}

interface Verbs {
  label: (choice: { label: string; value: LabelChoice["value"] }) => void;
  skip: () => void;
  undo: () => void;
  next: () => void;
  previous: () => void;
}

/** Digits and letters label, s skips, j and k go to the next row and back, u undoes, c writes a comment. */
function useLabelKeys(choices: readonly LabelChoice[], verbs: Verbs): void {
  const latest = useRef({ choices, verbs });
  latest.current = { choices, verbs };
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || document.querySelector("dialog[open]") !== null) return;
      if (event.target instanceof HTMLElement && event.target.closest("input, textarea, select, [contenteditable]") !== null) {
        if (event.key === "Escape") event.target.blur();
        return;
      }
      const key = event.key.toLowerCase();
      const chosen = latest.current.choices.find(({ keys }) => keys.includes(key));
      const { label, skip, undo, next, previous } = latest.current.verbs;
      const verb = chosen ? () => label(chosen) : ({ s: skip, u: undo, j: next, k: previous, c: () => document.querySelector<HTMLElement>(".label-note")?.focus() } as Record<string, () => void>)[key];
      if (verb === undefined) return;
      event.preventDefault();
      verb();
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, []);
}

function Choices({ queue, row, choices, busy, verbs }: { queue: LabelQueue; row: LabelRow; choices: readonly LabelChoice[]; busy: boolean; verbs: Verbs }) {
  const [score, setScore] = useState("");
  useEffect(() => setScore(typeof row.label === "number" ? String(row.label) : ""), [row.index]);
  const exact = Number(score);
  return (
    <>
      <p class="field-label">{QUESTIONS[queue.task.kind]}</p>
      <div class="label-choices line" role="group" aria-label="Label">
        {choices.map((one) => (
          <button key={one.label} type="button" class="button button-plain" aria-pressed={row.state === "labelled" && row.label === one.value} aria-keyshortcuts={one.keys.join(" ")} disabled={busy} onClick={() => verbs.label(one)}>
            {one.keys.map((key) => (
              <kbd key={key}>{key}</kbd>
            ))}
            <span>{oneLine(one.label, 60)}</span>
          </button>
        ))}
        <button type="button" class="button button-plain" aria-pressed={row.state === "skipped"} aria-keyshortcuts="s" disabled={busy} onClick={verbs.skip}>
          <kbd>s</kbd>
          <span>Skip</span>
        </button>
      </div>
      {queue.task.kind === "score" && (
        <form
          class="field-row line"
          onSubmit={(event) => {
            event.preventDefault();
            if (score.trim() !== "" && Number.isFinite(exact)) verbs.label({ label: score, value: exact });
          }}
        >
          <Field label="Another score" type="number" min={queue.task.min} max={queue.task.max} step="any" value={score} onValue={setScore} />
          <Button type="submit" disabled={busy || score.trim() === ""}>
            Use this score
          </Button>
        </form>
      )}
      {row.state !== "waiting" && (
        <p class="muted">
          {row.state === "skipped" ? "skipped" : `labelled ${shownLabel(row.label)}`}
          {row.by !== null && ` by ${row.by}`} <When at={row.at} />
        </p>
      )}
    </>
  );
}

function shownLabel(label: unknown): string {
  return label === true ? "passed" : label === false ? "not passed" : String(label);
}

const QUESTIONS: Record<LabelQueue["task"]["kind"], string> = { passed: "Does the answer pass?", choice: "Which label fits?", score: "How good is it?" };

/** A card with the row as evaluators got it, or as the data set has it; the answer stands out. */
function RowToLabel({ row, outputs }: { row: LabelRow; outputs: string | null }) {
  const { given } = row;
  const inputs = given === null ? row.row : ((given.variables ?? given.inputs ?? {}) as Record<string, unknown>);
  const id = idOf(row.row);
  return (
    <>
      <Panel title={`Row ${count(row.index)}${id && `, id ${id}`}`} class="panel-stack">
        {Object.entries(inputs).filter(([name]) => name !== "id").map(([name, value]) => (
          <section key={name} class={given === null && name === outputs ? "named-value label-answer" : "named-value"}>
            <h3>{name}</h3>
            <Value label={name} value={value} empty="null" />
          </section>
        ))}
        {given !== null && (
          <section class="named-value label-answer">
            <h3>Outputs</h3>
            <Value label="Outputs" value={given.outputs} />
          </section>
        )}
      </Panel>
      {given?.trace && (
        <Panel title="Trace">
          <SpanTree trace={given.trace} label="Spans" />
        </Panel>
      )}
    </>
  );
}

function AllDone({ queue, onBack }: { queue: LabelQueue; onBack: (() => void) | null }) {
  return (
    <div class="empty stack-tight">
      <p class="strong">{queue.waiting === 0 ? "Every row is labelled or skipped" : "Other people are labelling the remaining rows"}</p>
      <div class="empty-text stack">
        <Button kind="primary" onClick={() => setQuery({ tab: "agreement", row: null })}>
          Show the agreement
        </Button>
        {onBack && <Button onClick={onBack}>Back to the last row</Button>}
      </div>
    </div>
  );
}

const STATES = ["", "waiting", "labelled", "skipped"].map((value) => ({ value, label: value === "" ? "All rows" : value }));

function LabelledRows({ route, state, stamp }: { route: string; state: string | null; stamp: string }) {
  const found = useLoaded((signal) => call<LabelPage>("GET", `${route}/rows`, { signal, query: { state, limit: PAGE } }), [route, state, stamp]);
  const [more, setMore] = useState<LabelPage | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => setMore(null), [found.value]);
  const rows = [...(found.value?.rows ?? []), ...(more?.rows ?? [])];
  const next = (more ?? found.value)?.next_after ?? null;
  const loadMore = async () => {
    try {
      const page = await call<LabelPage>("GET", `${route}/rows`, { query: { state, limit: PAGE, after: next } });
      setMore({ rows: [...(more?.rows ?? []), ...page.rows], next_after: page.next_after });
    } catch (fault) {
      setError(fault);
    }
  };
  const head = [ROW_HEADING, "State", "Label", "By", "When", "Comment"];
  return (
    <>
      <div class="record-bar line">
        <Select label="Which rows" bare value={state ?? ""} options={STATES} onValue={(value) => setQuery({ state: value })} />
      </div>
      {found.error !== null && <ErrorNote error={found.error} onRetry={found.reload} />}
      {error !== null && <ErrorNote error={error} />}
      {found.value === null && found.error === null && <Spinner label="Loading rows" />}
      {found.value !== null && rows.length === 0 && <p class="muted">No such row.</p>}
      {rows.length > 0 && (
        <Table label="Rows of the queue" head={head.map((one) => <th key={one} scope="col">{one}</th>)}>
          {rows.map((one) => (
            <tr key={one.index}>
              <th scope="row">
                <button type="button" class="link-button" aria-label={`Row ${one.index}`} onClick={() => setQuery({ tab: null, row: String(one.index) })}>
                  {count(one.index)}
                </button>
              </th>
              <td>
                <span class={`chip ${one.state === "labelled" ? "chip-pass" : ""}`}>{one.state}</span>
              </td>
              <td>{one.label === null ? "" : shownLabel(one.label)}</td>
              <td>{one.by ?? ""}</td>
              <td>
                <When at={one.at} />
              </td>
              <td class="cell-text">{oneLine(one.note, 160)}</td>
            </tr>
          ))}
        </Table>
      )}
      {next !== null && (
        <div>
          <Button onClick={() => void loadMore()}>Load more rows</Button>
        </div>
      )}
    </>
  );
}

function AgreementOf({ queue }: { queue: LabelQueue }) {
  const jobs = useLoaded(async (signal) => (queue.job !== null ? [] : (await call<JobReport[]>("GET", "/v1/jobs", { signal, query: { limit: 200 } })).filter((one) => one.dataset === queue.dataset && one.status === "completed")), [queue.job, queue.dataset]);
  const [chosen, setChosen] = useState("");
  if (jobs.error !== null) return <ErrorNote error={jobs.error} onRetry={jobs.reload} />;
  if (jobs.value === null) return <Spinner label="Loading jobs" />;
  const job = queue.job ?? (chosen || jobs.value[0]?.id || null);
  if (job === null) return <p class="muted">No job has scored these rows yet. Start one over the data set to see how far its evaluators agree with the labels.</p>;
  return (
    <>
      {queue.job === null && (
        <div class="record-bar line">
          <Select label="Job" value={job} options={jobs.value.map((one) => ({ value: one.id, label: titleAmong(one, jobs.value ?? []) }))} onValue={setChosen} />
        </div>
      )}
      <QueueAgreement job={job} queue={queue.name} stamp={`${queue.labelled}`} />
    </>
  );
}
