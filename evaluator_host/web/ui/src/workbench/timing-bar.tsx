import { shownMs } from "../shown-text";
import type { Timing } from "../api/types";

const PARTS = [
  { name: "queue", label: "waiting" },
  { name: "environment", label: "packages" },
  { name: "load", label: "loading" },
  { name: "run", label: "running" },
] as const satisfies readonly { name: keyof Timing; label: string }[];

/** The time of a run, by phase. */
export function TimingBar({ timing }: { timing: Timing }) {
  const parts = PARTS.map((part) => ({ ...part, ms: timing[part.name] }));
  const rest = Math.max(timing.total - parts.reduce((sum, part) => sum + part.ms, 0), 0);
  const all = [...parts, { name: "rest", label: "other", ms: rest }];
  const sum = all.reduce((total, part) => total + part.ms, 0) || 1;
  return (
    <div class="stack-tight">
      <div class="timing-bar" aria-hidden="true">
        {all.map((part) => (
          <span key={part.name} class={`timing-${part.name}`} style={{ width: `${(100 * part.ms) / sum}%` }} />
        ))}
      </div>
      <ul class="line small" aria-label="Where the time went">
        {all
          .filter((part) => part.ms >= 0.05)
          .map((part) => (
            <li key={part.name}>
              <span class={`timing-dot timing-${part.name}`} aria-hidden="true" />
              {part.label} <span class="mono-number">{shownMs(part.ms)}</span>
            </li>
          ))}
      </ul>
    </div>
  );
}
