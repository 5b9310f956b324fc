/** Counts for the badge of the bell: firing alerts, and schedules whose last run created no job; loaded again while the tab is visible. */
import { useEffect, useState } from "preact/hooks";
import { call } from "../api/http";
import type { AlertReport, HostInfo, ScheduleReport } from "../api/types";
import { has } from "../host";

const EVERY_MS = 60_000;
const CHANGED = "evaluator-host:attention";

export function isFiring(alert: AlertReport): boolean {
  return alert.firing && !alert.acknowledged;
}

/** Whether the last run of a schedule created no job, and no alert reports this. */
function isMissed(schedule: ScheduleReport, alerts: readonly AlertReport[]): boolean {
  return schedule.last_error !== null && !schedule.paused && !alerts.some(({ rule, paused }) => rule.schedule === schedule.name && !paused);
}

/** Gives the badge the alerts and schedules that a page has loaded. */
export function showAttention(alerts: readonly AlertReport[], schedules: readonly ScheduleReport[]): void {
  window.dispatchEvent(new CustomEvent(CHANGED, { detail: attentionOf(alerts, schedules) }));
}

export interface Attention {
  /** Alerts that fire. */
  firing: number;
  /** Schedules whose last run created no job, and that have no alert. */
  missed: number;
}

function attentionOf(alerts: readonly AlertReport[], schedules: readonly ScheduleReport[]): Attention {
  return { firing: alerts.filter(isFiring).length, missed: schedules.filter((one) => isMissed(one, alerts)).length };
}

/** The counts of the badge; 0 until the host has answered. */
export function useAttention(host: HostInfo | null): Attention {
  const [found, setFound] = useState<Attention>({ firing: 0, missed: 0 });
  useEffect(() => {
    if (host === null) return undefined;
    const list = <T>(resource: "alerts" | "schedules") => (has(host, [resource]) ? call<T[]>("GET", `/v1/${resource}`) : []);
    const look = () => {
      // the page itself shows the error
      if (!document.hidden) Promise.all([list<AlertReport>("alerts"), list<ScheduleReport>("schedules")]).then(([alerts, schedules]) => setFound(attentionOf(alerts, schedules)), () => undefined);
    };
    const show = (event: Event) => setFound((event as CustomEvent<Attention>).detail);
    look();
    const timer = setInterval(look, EVERY_MS);
    window.addEventListener(CHANGED, show);
    return () => {
      clearInterval(timer);
      window.removeEventListener(CHANGED, show);
    };
  }, [host]);
  return found;
}

/** The text of the badge for screen readers. */
export function attentionInWords({ firing, missed }: Attention): string {
  const alerts = firing === 0 ? [] : [firing === 1 ? "1 alert is firing" : `${firing} alerts are firing`];
  const schedules = missed === 0 ? [] : [missed === 1 ? "1 schedule created no job" : `${missed} schedules created no job`];
  return [...alerts, ...schedules].join(", ");
}
