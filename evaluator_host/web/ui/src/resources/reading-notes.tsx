import { count, counted } from "./format";
import type { DatasetReport } from "../api/types";

/** What the host says about how it read a file: notes, such as on empty cells, and the lines that are not rows. */
export function ReadingNotes({ report }: { report: DatasetReport }) {
  return (
    <>
      {report.notes.map((note) => (
        <p key={note} class="note note-info">
          {note}
        </p>
      ))}
      <BadLines report={report} />
    </>
  );
}

function BadLines({ report }: { report: DatasetReport }) {
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
