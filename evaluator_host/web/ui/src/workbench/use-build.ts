/** Installs the packages of a draft and reports the progress. */
import { useCallback, useEffect, useState } from "preact/hooks";
import { call, events, isAbort } from "../api/http";
import type { BuildEvent, EnvironmentReport } from "../api/types";
import type { Draft } from "./draft";

export interface Build {
  state: "none" | "building" | "ready" | "failed";
  step: BuildEvent | null;
  report: EnvironmentReport | null;
  error: unknown;
  retry: () => void;
}

type Seen = Omit<Build, "retry">;

const NONE: Seen = { state: "none", step: null, report: null, error: null };
const PAUSE_MS = 300; // milliseconds to wait, since several pins are often added one after another

export function useBuild({ packages, language, python }: Pick<Draft, "packages" | "language" | "python">): Build {
  const [build, setBuild] = useState<Seen>(NONE);
  const [turn, setTurn] = useState(0);
  const asked = JSON.stringify({ language, packages, python: language === "python" ? python : null });
  useEffect(() => {
    if (packages.length === 0) {
      setBuild(NONE);
      return;
    }
    const abort = new AbortController();
    setBuild({ ...NONE, state: "building" });
    const timer = setTimeout(() => {
      install(asked, abort.signal, setBuild).catch((error: unknown) => {
        if (!isAbort(error) && !abort.signal.aborted) setBuild({ ...NONE, state: "failed", error });
      });
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [asked, turn]);
  return { ...build, retry: useCallback(() => setTurn((before) => before + 1), []) };
}

async function install(body: string, signal: AbortSignal, tell: (build: Seen) => void): Promise<void> {
  let report = await call<EnvironmentReport>("POST", "/v1/environments", { body: JSON.parse(body), signal });
  const path = `/v1/environments/${encodeURIComponent(report.key)}`;
  if (report.status === "building") {
    for await (const { data } of events(`${path}/events`, { signal })) {
      tell({ ...NONE, state: "building", step: data as BuildEvent, report });
    }
    report = await call<EnvironmentReport>("GET", path, { signal });
  }
  if (signal.aborted) return;
  if (report.status === "ready") tell({ ...NONE, state: "ready", report });
  else tell({ ...NONE, state: "failed", report, error: report.error ?? "The packages could not be installed." });
}
