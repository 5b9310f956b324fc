/** Schedules of jobs, and alerts on the scores of jobs and live traces. */
import { useEffect, useState } from "preact/hooks";
import { call } from "../api/http";
import type { ComponentChildren } from "preact";
import type { AlertReport, EvaluatorReport, JobReport, ScheduleReport } from "../api/types";
import { Button } from "../components/button";
import { Dialog } from "../components/dialog";
import { Empty } from "../components/empty";
import { ErrorNote } from "../components/error-note";
import { Field, Select } from "../components/field";
import { Prose } from "../components/prose";
import { Spinner } from "../components/spinner";
import { Table } from "../components/table";
import { toast } from "../components/toasts";
import { useAction } from "../components/use-action";
import { useLoaded } from "../components/use-loaded";
import { Confirm } from "../resources/confirm";
import { isFiring, showAttention } from "../resources/attention";
import { count, dayAndTime, rounded, moment, shortId, titleAmong } from "../resources/format";
import { PageHead, Panel, Segments, When } from "../resources/parts";
import { ALERT_FIELDS, AlertFields, alertBody, hasBound, NEW_ALERT } from "./schedule-dialog";
import { boundsInWords, inWords, ruleInWords } from "./times";
import { useHas } from "../host";
import { Link, navigate } from "../router";
import type { PageProps } from "../routes";

export default function SchedulesPage({ query }: PageProps) {
  const has = useHas();
  const [alerting, scheduling] = [has("alerts"), has("schedules")];
  const shown = alerting && (query.get("show") === "alerts" || !scheduling) ? "alerts" : "schedules";
  const schedules = useLoaded(async (signal) => (scheduling ? call<ScheduleReport[]>("GET", "/v1/schedules", { signal }) : []), [scheduling]);
  const alerts = useLoaded(async (signal) => (alerting ? call<AlertReport[]>("GET", "/v1/alerts", { signal }) : []), [alerting]);
  const firing = (alerts.value ?? []).filter(isFiring).length;
  useEffect(() => {
    if (alerts.value !== null && schedules.value !== null) showAttention(alerts.value, schedules.value);
  }, [alerts.value, schedules.value]);
  const [adding, setAdding] = useState(query.has("new") ? (/^(job|schedule|live) ./.exec(query.get("new") ?? "")?.input ?? "") : null);
  return (
    <div class="page">
      <PageHead title={shown === "alerts" ? "Alerts" : "Schedules"} mark={firing > 0 ? <span class="chip chip-fail">{firing} firing</span> : undefined}>
        {alerting && scheduling && (
          <Segments
            label="What to show"
            value={shown}
            options={[
              { value: "schedules", label: "Schedules" },
              { value: "alerts", label: "Alerts" },
            ]}
            onValue={(value) => navigate(value === "alerts" ? "/schedules?show=alerts" : "/schedules")}
          />
        )}
        {shown === "alerts" ? (
          <Button kind="primary" onClick={() => setAdding("")}>
            New alert
          </Button>
        ) : (
          <Link to="/jobs/new?schedule=1" class="button button-primary">
            New schedule
          </Link>
        )}
      </PageHead>
      {shown === "schedules" ? <Schedules found={schedules} alerts={alerts.value ?? []} /> : <Alerts found={alerts} />}
      {adding !== null && <AlertDialog watched={adding} schedules={schedules.value ?? []} onClose={() => setAdding(null)} onMade={alerts.reload} />}
    </div>
  );
}

type Found<T> = { value: readonly T[] | null; error: unknown; loading: boolean; reload: () => void };

/** Sends the request of a button, shows the outcome, and loads the list again. */
async function ask(method: string, path: string, done: string, reload: () => void, body?: unknown): Promise<void> {
  try {
    await call(method, path, body === undefined ? {} : { body });
    toast(done);
  } catch (fault) {
    toast(fault instanceof Error ? fault.message : String(fault));
  }
  reload();
}

/** Buttons to pause and remove a schedule or an alert; `children` explain the removal. */
function PauseAndRemove({ route, one, reload, pauses = true, children }: { route: string; one: { name: string; paused: boolean }; reload: () => void; pauses?: boolean; children: ComponentChildren }) {
  const remove = async (force = false) => {
    await call("DELETE", route, { query: { force } });
    reload();
  };
  return (
    <>
      {pauses && (
        <Button small onClick={() => void ask("PATCH", route, one.paused ? "Resumed" : "Paused", reload, { paused: !one.paused })}>
          {one.paused ? "Resume" : "Pause"}
        </Button>
      )}
      <Confirm small label="Remove" title={`Remove ${one.name}?`} onConfirm={() => remove()} onForce={() => remove(true)}>
        {children}
      </Confirm>
    </>
  );
}

function Schedules({ found, alerts }: { found: Found<ScheduleReport>; alerts: readonly AlertReport[] }) {
  if (found.error !== null) return <ErrorNote error={found.error} onRetry={found.reload} />;
  if (found.value === null) return <Spinner label="Loading schedules" />;
  if (found.value.length === 0) {
    return (
      <Empty title="No schedules yet">
        <p>
          A schedule starts a job every hour, day or week. Fill in the form of a <Link to="/jobs/new">job</Link> and choose <em>Run at fixed times</em>.
        </p>
      </Empty>
    );
  }
  const heads = ["Name", "Runs", "Job", "Next", "Last job", ""];
  return (
    <Table label="Schedules" head={heads.map((name) => (name === "" ? <th key="actions" scope="col" aria-label="Actions" /> : <th key={name} scope="col">{name}</th>))}>
      {found.value.map((one) => {
        const route = `/v1/schedules/${encodeURIComponent(one.name)}`;
        const run = async () => {
          try {
            const job = await call<JobReport>("POST", `${route}/run`);
            navigate(`/jobs/${job.id}`);
          } catch (fault) {
            toast(fault instanceof Error ? fault.message : String(fault));
          }
        };
        return (
          <tr key={one.name}>
            <th scope="row" class="cell-name">
              {one.name} {one.paused && <span class="chip chip-warn">paused</span>}
            </th>
            <td title={one.cron}>
              {inWords(one.cron)} <span class="muted">{one.timezone}</span>
              {alerts.filter(({ rule }) => rule.schedule === one.name).map((alert) => (
                <p key={alert.name} class="muted">
                  <Link to="/schedules?show=alerts">alert</Link>: {boundsInWords(alert.rule)}
                </p>
              ))}
            </td>
            <td class="cell-text">
              {one.evaluators.join(", ")} <span class="muted">over {one.dataset ?? "its own rows"}</span>
            </td>
            <td>{one.next_runs[0] ? <time dateTime={one.next_runs[0]} title={moment(one.next_runs[0])} class="nowrap">{dayAndTime(one.next_runs[0])}</time> : <span class="muted">–</span>}</td>
            <td>
              {one.last_job !== null ? <Link to={`/jobs/${one.last_job}`}>{shortId(one.last_job)}</Link> : <span class="muted">none yet</span>} {one.last_at !== null && <When at={one.last_at} />}
              <p>
                <Link to={`/jobs?find=${encodeURIComponent(one.name)}`} class="nowrap" aria-label={`All its jobs: ${one.name}`}>All its jobs</Link>
              </p>
              {one.last_error !== null && <p class="cell-error"><Prose text={one.last_error} /></p>}
              {one.missed > 0 && <p class="muted">{one.missed_more ? "at least " : ""}{count(one.missed)} missed</p>}
            </td>
            <td>
              <span class="chips">
                <Button small onClick={() => void run()}>
                  Run now
                </Button>
                <PauseAndRemove route={route} one={one} reload={found.reload}>
                  The schedule will create no more jobs. Existing jobs stay.
                </PauseAndRemove>
              </span>
            </td>
          </tr>
        );
      })}
    </Table>
  );
}

function Alerts({ found }: { found: Found<AlertReport> }) {
  if (found.error !== null) return <ErrorNote error={found.error} onRetry={found.reload} />;
  if (found.value === null) return <Spinner label="Loading alerts" />;
  if (found.value.length === 0) return <Empty title="No alerts yet">An alert watches the mean, the pass rate or the share of failed rows of a job, of a schedule’s jobs or of live traces. If the metric is out of bounds, the alert appears here; if you name a webhook, it is also sent there.</Empty>;
  return (
    <>
      <AlertTable found={found} />
      <Messages alerts={found.value} />
    </>
  );
}

const SHOWN = 50;

/** The messages of all alerts, newest first. */
function Messages({ alerts }: { alerts: readonly AlertReport[] }) {
  const told = alerts.flatMap((alert) => alert.deliveries.map((one) => ({ alert, one }))).sort((a, b) => b.one.created_at.localeCompare(a.one.created_at));
  return (
    <Panel title="Messages">
      {told.length === 0 && <p class="muted">No alerts yet. An alert checks each job when the job has ended, and live traces every few seconds.</p>}
      {told.length > 0 && (
        <ul class="messages">
          {told.slice(0, SHOWN).map(({ alert, one }) => (
            <li key={one.id}>
              <span class={`chip ${one.type === "alert.firing" ? "chip-fail" : one.type === "alert.resolved" ? "chip-pass" : ""}`}>{one.type.replace("alert.", "")}</span>
              <span class="message-text">
                {one.text} {one.job !== null && <Link to={`/jobs/${one.job}`} class="nowrap">Open the job</Link>}
              </span>
              <span class="muted">
                <When at={one.created_at} />
                {alert.rule.url !== null && `, webhook: ${one.status}`}
              </span>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

function AlertTable({ found }: { found: Found<AlertReport> }) {
  const heads = ["Name", "State", "Fires when", "Last value", "Last message", ""];
  return (
    <Table label="Alerts" head={heads.map((name) => (name === "" ? <th key="actions" scope="col" aria-label="Actions" /> : <th key={name} scope="col">{name}</th>))}>
      {(found.value ?? []).map((one) => {
        const route = `/v1/alerts/${encodeURIComponent(one.name)}`;
        const last = one.deliveries[0];
        return (
          <tr key={one.name}>
            <th scope="row" class="cell-name">
              {one.name}
            </th>
            <td>
              <AlertState alert={one} />
            </td>
            <td class="cell-text">{ruleInWords(one.rule)}</td>
            <td>{one.checked_at === null ? <span class="muted">none</span> : (<>{rounded(one.value)} <span class="muted">(<When at={one.checked_at} />)</span></>)}</td>
            <td>
              {last === undefined ? <span class="muted">none</span> : (<>{last.type.replace("alert.", "")}{one.rule.url !== null && `, ${last.status}`} <span class="muted">(<When at={last.created_at} />)</span></>)}
              {last?.error && <p class="cell-error">{last.error}</p>}
            </td>
            <td>
              <span class="chips">
                {isFiring(one) && (
                  <Button small title="Mark the alert as seen: the bell does not count it until its next message" onClick={() => void ask("PATCH", route, "Acknowledged", found.reload, { acknowledged: true })}>
                    Acknowledge
                  </Button>
                )}
                <Button small onClick={() => void ask("POST", `${route}/test`, one.rule.url === null ? "The test message is below" : "A test message is on its way", found.reload)}>
                  Send a test
                </Button>
                <PauseAndRemove route={route} one={one} reload={found.reload} pauses={one.rule.job === null}>
                  The alert will send no more messages.
                </PauseAndRemove>
              </span>
            </td>
          </tr>
        );
      })}
    </Table>
  );
}

/** The state of an alert; an alert on a single job is done once it has checked that job. */
function AlertState({ alert }: { alert: AlertReport }) {
  const paused = alert.paused && alert.rule.job === null;
  return (
    <span class="chips">
      {alert.firing && (alert.acknowledged ? <span class="chip chip-warn">acknowledged</span> : <span class="chip chip-fail">firing</span>)}
      {paused && <span class="chip chip-warn">paused</span>}
      {!alert.firing && !paused && (alert.checked_at === null ? <span class="chip">{alert.paused ? "not checked" : "not checked yet"}</span> : <span class="chip chip-pass">ok</span>)}
    </span>
  );
}

const JOBS_OFFERED = 20;

/** A dialog that creates an alert; `watched` is the initial choice: `job ID`, `schedule NAME` or `live NAME`. */
function AlertDialog({ watched, schedules, onClose, onMade }: { watched: string; schedules: readonly ScheduleReport[]; onClose: () => void; onMade: () => void }) {
  const jobs = useLoaded((signal) => call<JobReport[]>("GET", "/v1/jobs", { signal, query: { limit: JOBS_OFFERED } }), []);
  const evaluators = useLoaded((signal) => call<EvaluatorReport[]>("GET", "/v1/evaluators", { signal }), []);
  const [name, setName] = useState("");
  const [source, setSource] = useState(watched);
  const [alert, setAlert] = useState(NEW_ALERT);
  const { busy, error, run } = useAction();
  const offered = [
    ...schedules.map((one) => ({ value: `schedule ${one.name}`, label: `Jobs of the schedule ${one.name}` })),
    ...(jobs.value ?? []).map((one) => ({ value: `job ${one.id}`, label: `Job ${titleAmong(one, jobs.value ?? [])}` })),
    ...(evaluators.value ?? []).map((one) => ({ value: `live ${one.name}`, label: `Live traces of ${one.name}` })),
  ];
  const sources = watched === "" || offered.some(({ value }) => value === watched) ? offered : [{ value: watched, label: watched.replace(/^job (.*)/, (_, id: string) => `Job ${shortId(id)}`) }, ...offered];
  const chosen = source || sources[0]?.value || "";
  const ready = name.trim() !== "" && chosen !== "" && hasBound(alert);
  const save = () =>
    run(async () => {
      const [kind = "", ...rest] = chosen.split(" ");
      await call("POST", "/v1/alerts", { body: { name: name.trim(), [kind]: rest.join(" "), ...alertBody(alert) } });
      onMade();
      onClose();
    });
  return (
    <Dialog
      title="New alert"
      onClose={onClose}
      onSubmit={() => ready && void save()}
      actions={
        <Button kind="primary" type="submit" busy={busy} disabled={!ready}>
          Create
        </Button>
      }
    >
      <Field label="Name" value={name} onValue={setName} hint="Use letters, digits, dots, dashes and underscores." autocomplete="off" spellcheck={false} />
      <Select label="Watches" value={chosen} options={sources} onValue={setSource} />
      <AlertFields alert={alert} onAlert={setAlert} />
      {error !== null && <ErrorNote title="The alert was not created" error={error} fields={ALERT_FIELDS} />}
    </Dialog>
  );
}
