/** The alerts that are firing, for the badge beside *Schedules*; asked again while the tab is looked at. */
import { useEffect, useState } from "preact/hooks";
import { call } from "../api/http";
import type { AlertReport } from "../api/types";

const EVERY_MS = 60_000;
const CHANGED = "evaluator-host:alerts";

export function isFiring(alert: AlertReport): boolean {
  return alert.firing && !alert.acknowledged;
}

/** Tells the badge that a page has changed alerts, or has seen them change. */
export function alertsChanged(): void {
  window.dispatchEvent(new Event(CHANGED));
}

/** How many alerts fire; 0 until the host has said so. */
export function useFiring(ready: boolean): number {
  const [firing, setFiring] = useState(0);
  useEffect(() => {
    if (!ready) return undefined;
    const look = () => {
      if (!document.hidden) call<AlertReport[]>("GET", "/v1/alerts").then((all) => setFiring(all.filter(isFiring).length), () => undefined); // the page says what is wrong
    };
    look();
    const timer = setInterval(look, EVERY_MS);
    window.addEventListener(CHANGED, look);
    return () => {
      clearInterval(timer);
      window.removeEventListener(CHANGED, look);
    };
  }, [ready]);
  return firing;
}
