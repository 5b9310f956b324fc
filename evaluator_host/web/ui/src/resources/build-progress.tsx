import { useEffect, useState } from "preact/hooks";
import { events, isAbort } from "../api/http";
import type { BuildEvent } from "../api/types";

const WORDS: Record<BuildEvent["step"], string> = {
  resolving: "Resolving versions",
  downloading: "Downloading",
  installing: "Installing",
  checking: "Checking imports",
  ready: "Ready",
  failed: "Failed",
};
const ORDER: readonly BuildEvent["step"][] = ["resolving", "downloading", "installing", "checking", "ready"];

/** Shows the progress of a build; `onEnd` is called when it succeeds or fails. */
export function BuildProgress({ name, onEnd }: { name: string; onEnd: () => void }) {
  const [event, setEvent] = useState<BuildEvent | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    const follow = async () => {
      for await (const { data } of events(`/v1/environments/${encodeURIComponent(name)}/events`, { signal: abort.signal })) {
        const step = data as BuildEvent;
        setEvent(step);
        if (step.step === "ready" || step.step === "failed") return;
      }
    };
    follow().catch((error: unknown) => !isAbort(error) && undefined).finally(() => !abort.signal.aborted && onEnd());
    return () => abort.abort();
  }, [name]);
  const share = event === null ? 0 : shareOf(event);
  const many = event?.total ? ` ${event.done} of ${event.total}` : "";
  const words = event === null ? "Waiting" : `${WORDS[event.step]}${many}`;
  return (
    <div class="build-progress">
      <div class="progress" role="progressbar" aria-label="Build" aria-valuenow={Math.round(share * 100)} aria-valuemin={0} aria-valuemax={100} aria-valuetext={words}>
        <div class="progress-bar" style={{ width: `${share * 100}%` }} />
      </div>
      <p class="muted nowrap">{words}</p>
    </div>
  );
}

/** The filled share of the bar. Each step has a part of the bar, which fills with each package. */
function shareOf(event: BuildEvent): number {
  const at = ORDER.indexOf(event.step);
  if (at < 0) return 1;
  const within = event.total ? Math.min(1, event.done / event.total) : 0.5;
  return event.step === "ready" ? 1 : (at + within) / (ORDER.length - 1);
}
