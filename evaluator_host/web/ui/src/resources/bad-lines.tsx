import { count, counted } from "./format";
import type { DatasetReport } from "../api/types";

/** The lines of a file that could not be read as rows, and why. */
export function BadLines({ report }: { report: DatasetReport }) {
  if (report.bad_row_count === 0) return null;
  const left = report.bad_row_count - report.bad_rows.length;
  return (
    <div class="note note-warn">
      <p class="strong">{counted(report.bad_row_count, "line was", "lines were")} left out</p>
      <ul class="bad-lines" tabIndex={0} aria-label="Lines that were left out">
        {report.bad_rows.map((bad) => (
          <li key={bad.line}>
            <span class="muted">line {count(bad.line)}</span> {bad.message}
          </li>
        ))}
      </ul>
      {left > 0 && <p class="muted">and {count(left)} more</p>}
    </div>
  );
}
