import { count } from "../resources/format";
import type { LabelQueue } from "../api/types";

/** The progress of a label queue: rows that people labelled or skipped. */
export function QueueProgress({ queue }: { queue: LabelQueue }) {
  const done = queue.labelled + queue.skipped;
  const words = `${count(queue.labelled)} of ${count(queue.rows)} labelled${queue.skipped > 0 ? `, ${count(queue.skipped)} skipped` : ""}`;
  return (
    <div class="job-progress">
      <div class="progress" role="progressbar" aria-label="Progress" aria-valuenow={done} aria-valuemin={0} aria-valuemax={queue.rows} aria-valuetext={words}>
        <div class="progress-bar" style={{ width: `${(100 * done) / Math.max(1, queue.rows)}%` }} />
      </div>
      <p class="muted">{words}</p>
    </div>
  );
}
