/** A dialog that creates a schedule for a job, with an alert on its scores. */
import { useState } from "preact/hooks";
import { call } from "../api/http";
import type { AlertMetric, JobIn } from "../api/types";
import { Button } from "../components/button";
import { Dialog } from "../components/dialog";
import { ErrorNote } from "../components/error-note";
import { Field, Select, typedNumber } from "../components/field";
import { useHas } from "../host";
import { toast } from "../components/toasts";
import { useAction } from "../components/use-action";
import { navigate } from "../router";
import { cronOf, DAYS, inWords, METRICS, type Often, scheduleName, type Timing, unknownZone } from "./times";

const OFTEN: readonly { value: Often; label: string }[] = [
  { value: "weekly", label: "Every week" },
  { value: "daily", label: "Every day" },
  { value: "hourly", label: "Every hour" },
  { value: "cron", label: "Cron expression" },
];

export function ScheduleDialog({ job, suggested, onClose }: { job: JobIn; suggested: string; onClose: () => void }) {
  const [given, setName] = useState<string | null>(null);
  const [timing, setTiming] = useState<Timing>({ often: "weekly", day: 1, at: "07:00", cron: "0 7 * * 1" });
  const [timezone, setTimezone] = useState(Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC");
  const [newest, setNewest] = useState(false);
  const has = useHas();
  const [alerting, setAlerting] = useState(false);
  const [alert, setAlert] = useState<AlertForm>(NEW_ALERT);
  const { busy, error, run } = useAction();
  const set = (changes: Partial<Timing>) => setTiming({ ...timing, ...changes });
  const cron = cronOf(timing);
  const name = given ?? scheduleName(suggested, timing.often);
  const unknown = unknownZone(timezone.trim());
  const ready = name.trim() !== "" && unknown === null && (!alerting || hasBound(alert));
  const pinned = (job.evaluators ?? []).filter((one) => typeof one === "string" && one.includes("@"));
  const save = () =>
    run(async () => {
      await call("POST", "/v1/schedules", { body: { name: name.trim(), cron, timezone: timezone.trim(), job: newest ? withNewest(job) : job } });
      if (alerting) {
        await call("POST", "/v1/alerts", { body: { name: `${name.trim()}-alert`, schedule: name.trim(), ...alertBody(alert) } }).catch(async (fault: unknown) => {
          // removes the schedule if the alert fails, so that saving again works
          await call("DELETE", `/v1/schedules/${encodeURIComponent(name.trim())}`);
          throw fault;
        });
      }
      toast(`${name.trim()} runs ${inWords(cron)}`);
      navigate("/schedules");
    });
  return (
    <Dialog
      title="Run at fixed times"
      onClose={onClose}
      onSubmit={() => ready && void save()}
      actions={
        <Button kind="primary" type="submit" busy={busy} disabled={!ready}>
          Schedule
        </Button>
      }
    >
      <Field label="Name" value={name} onValue={setName} hint="Use letters, digits, dots, dashes and underscores." autocomplete="off" spellcheck={false} />
      <div class="field-row line">
        <Select label="How often" value={timing.often} options={OFTEN} onValue={(often) => set({ often: often as Often })} />
        {timing.often === "weekly" && <Select label="Day" value={String(timing.day)} options={DAYS.map((label, value) => ({ value: String(value), label }))} onValue={(day) => set({ day: Number(day) })} />}
        {timing.often === "cron" ? <Field label="Cron expression" value={timing.cron} onValue={(text) => set({ cron: text })} hint="Minute, hour, day, month, day of the week" spellcheck={false} /> : <Field label="At" type="time" value={timing.at} onValue={(at) => set({ at })} />}
      </div>
      <Field label="Time zone" value={timezone} onValue={setTimezone} error={unknown ?? undefined} spellcheck={false} />
      <p class="muted" role="status">
        {unknown === null && `Runs ${inWords(cron)}, ${timezone.trim()}. `}Evaluators without a version and the data set are the newest at that time.
      </p>
      {pinned.length > 0 && (
        <label class="check">
          <input type="checkbox" checked={newest} onChange={(event) => setNewest(event.currentTarget.checked)} />
          <span>
            Take the newest versions <span class="muted">instead of {pinned.join(", ")}</span>
          </span>
        </label>
      )}
      {has("alerts") && (
        <label class="check">
          <input type="checkbox" checked={alerting} onChange={(event) => setAlerting(event.currentTarget.checked)} />
          <span>
            Alert me <span class="muted">when a metric is out of bounds, or the job fails</span>
          </span>
        </label>
      )}
      {alerting && <AlertFields alert={alert} onAlert={setAlert} />}
      {error !== null && <ErrorNote title="The job was not scheduled" error={error} fields={{ ...ALERT_FIELDS, timezone: "Time zone", cron: "Cron expression" }} />}
    </Dialog>
  );
}

function withNewest(job: JobIn): JobIn {
  return { ...job, evaluators: job.evaluators?.map((one) => (typeof one === "string" ? one.replace(/@.*$/, "") : one)) };
}

/** The labels of the fields of an alert. */
export const ALERT_FIELDS: Readonly<Record<string, string>> = { name: "Name", url: "Webhook", below: "Bound", above: "Bound", min_rows: "Minimum number of rows", metric: "Metric" };

export interface AlertForm {
  metric: AlertMetric;
  bound: "below" | "above";
  value: string;
  url: string;
  minRows: string;
}

export const NEW_ALERT: AlertForm = { metric: "mean", bound: "below", value: "0.8", url: "", minRows: "1" };

export function alertBody({ metric, bound, value, url, minRows }: AlertForm): Record<string, unknown> {
  return { metric, [bound]: typedNumber(value), url: url.trim() || null, min_rows: Math.max(1, Math.trunc(typedNumber(minRows) ?? 1)) };
}

/** Whether an alert can be created: a bound is never 0 by default. */
export function hasBound({ value }: AlertForm): boolean {
  return typedNumber(value) !== null;
}

export function AlertFields({ alert, onAlert }: { alert: AlertForm; onAlert: (alert: AlertForm) => void }) {
  const set = (changes: Partial<AlertForm>) => onAlert({ ...alert, ...changes });
  return (
    <>
      <div class="field-row line">
        <Select label="Metric" value={alert.metric} options={METRICS} onValue={(metric) => set({ metric: metric as AlertMetric, bound: metric === "failure_rate" ? "above" : "below" })} />
        <Select
          label="Is"
          value={alert.bound}
          options={[
            { value: "below", label: "below" },
            { value: "above", label: "above" },
          ]}
          onValue={(bound) => set({ bound: bound as AlertForm["bound"] })}
        />
        <Field label="Bound" type="number" step="any" value={alert.value} onValue={(value) => set({ value })} error={hasBound(alert) ? null : "Enter a number."} />
      </div>
      {alert.metric !== "failure_rate" && <p class="field-hint small">Failed rows do not count here, unless the job counts them as 0. To be told about failed rows, also create an alert on the fraction of failed rows.</p>}
      <div class="field-row line">
        <Field label="Webhook (optional)" placeholder="https://hooks.example.com/…" value={alert.url} onValue={(url) => set({ url })} hint="These pages show the alert even without a webhook." spellcheck={false} autocomplete="off" />
        <Field label="Minimum number of rows" type="number" min={1} value={alert.minRows} onValue={(minRows) => set({ minRows })} />
      </div>
    </>
  );
}
