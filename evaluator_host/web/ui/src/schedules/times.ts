/** Schedules and alerts in words. */
import type { AlertMetric, AlertRule } from "../api/types";
import { rounded, shortId } from "../resources/format";

export const METRICS: readonly { value: AlertMetric; label: string }[] = [
  { value: "mean", label: "Mean score" },
  { value: "pass_rate", label: "Pass rate (0 to 1)" },
  { value: "failure_rate", label: "Fraction of failed rows (0 to 1)" },
];

export const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"] as const;

export type Often = "hourly" | "daily" | "weekly" | "cron";

export interface Timing {
  often: Often;
  /** Day of the week; 0 is Sunday. */
  day: number;
  /** Time of day: "07:30". */
  at: string;
  cron: string;
}

/** The cron expression for the chosen times. */
export function cronOf({ often, day, at, cron }: Timing): string {
  const [hour = 0, minute = 0] = at.split(":").map(Number);
  if (often === "cron") return cron.trim();
  if (often === "hourly") return `${minute} * * * *`;
  return often === "daily" ? `${minute} ${hour} * * *` : `${minute} ${hour} * * ${day}`;
}

/** The suggested name of a schedule: `answers-daily`. */
export function scheduleName(of: string, often: Often): string {
  const end = often === "cron" ? "schedule" : often;
  return `${of.replaceAll(/[^\w.-]+/g, "-").slice(0, 63 - end.length - 1)}-${end}`;
}

/** Why a time zone cannot be used, with the one that was probably meant; null if it can. */
export function unknownZone(zone: string): string | null {
  const known = [...Intl.supportedValuesOf("timeZone"), "UTC"];
  const wanted = zone.toLowerCase().replaceAll(" ", "_");
  const same = known.find((one) => one.toLowerCase() === wanted);
  if (same === zone || (same === undefined && isZone(zone))) return null;
  const meant = same ?? known.find((one) => one.toLowerCase().endsWith(`/${wanted}`));
  if (zone === "") return "Enter a time zone, such as Europe/Berlin or UTC.";
  return `There is no time zone ${zone}. ${meant === undefined ? "Write it as Europe/Berlin or UTC." : `Did you mean ${meant}?`}`;
}

function isZone(zone: string): boolean {
  try {
    return zone !== "" && new Intl.DateTimeFormat("en", { timeZone: zone }) !== null;
  } catch {
    return false;
  }
}

/** A cron expression in words, if it is a common one. */
export function inWords(cron: string): string {
  const found = /^(\d+) (\d+|\*) \* \* (\d|\*)$/.exec(cron);
  if (found === null) return cron;
  const [, minute = "", hour = "", day = ""] = found;
  if (hour === "*") return day === "*" ? `every hour at :${minute.padStart(2, "0")}` : cron;
  const at = `${hour.padStart(2, "0")}:${minute.padStart(2, "0")}`;
  return day === "*" ? `every day at ${at}` : `every ${DAYS[Number(day) % 7]} at ${at}`;
}

/** A rule in words: "mean of weekly below 0.8". */
export function ruleInWords(rule: AlertRule): string {
  const of = rule.schedule ?? rule.live ?? rule.job ?? "";
  const source = rule.schedule !== null ? `jobs of ${of}` : rule.live !== null ? `live traces of ${of}, last ${rule.window_minutes} min` : `job ${shortId(of)}`;
  return `${boundsInWords(rule)} (${source})`;
}

/** The metric of a rule and its bounds: `mean below 0.8`. */
export function boundsInWords(rule: AlertRule): string {
  const bounds = [rule.below !== null && `below ${rounded(rule.below)}`, rule.above !== null && `above ${rounded(rule.above)}`].filter(Boolean).join(" or ");
  return `${rule.metric.replace("_", " ")}${rule.evaluator === null ? "" : ` of ${rule.evaluator}`} ${bounds}`;
}
