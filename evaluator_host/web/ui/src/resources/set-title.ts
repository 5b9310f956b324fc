import type { EnvironmentReport } from "../api/types";
import { count } from "./format";

/** The requested packages; only the first ones if there are many. */
export function setTitle(report: EnvironmentReport): string {
  const asked = report.packages.filter((one) => one.requested);
  const shown = (asked.length > 0 ? asked : report.packages).map((one) => `${one.name} ${one.version}`);
  const more = shown.length > 6 ? ` and ${count(shown.length - 6)} more` : "";
  return shown.length === 0 ? "no packages" : shown.slice(0, 6).join(", ") + more;
}
