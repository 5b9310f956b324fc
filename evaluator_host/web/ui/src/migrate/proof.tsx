/** The result of a migration: changes, open points, and the proof. */
import type { ComponentChildren } from "preact";
import { Table } from "../components/table";
import { shownJson } from "../json";
import { ROW_HEADING } from "../resources/format";
import { plain, shownNumber } from "../shown-text";
import type { Migration, Proof, Remark, Result } from "../api/types";

const SAID: Record<Migration["status"], { title: string; text: string }> = {
  migrated: { title: "Rewritten", text: "" },
  adapted: { title: "Kept, with an adapter", text: "The old code stays under another name; a new function calls it." },
  current: { title: "Nothing to do", text: "The code already has this signature." },
  as_pasted: { title: "Runs as pasted", text: "There is nothing to migrate." },
  refused: { title: "Left as it is", text: "The code cannot be rewritten safely. The reasons are below." },
  no_evaluator: { title: "No evaluator", text: "The code defines no function of that name." },
};

export function Verdict({ migration, actions }: { migration: Migration; actions?: ComponentChildren }) {
  const said = SAID[migration.status];
  return (
    <section class="panel" aria-labelledby="verdict-title">
      <header class="panel-head">
        <h2 id="verdict-title" class="verdict-title">
          {said.title} <ProofChip proof={migration.proof} />
        </h2>
        <div class="page-actions line">{actions}</div>
      </header>
      <div class="panel-body verdict stack">
        {said.text && <p class="muted">{said.text}</p>}
        {migration.contract !== null && <p>It already runs as it is, with the contract {migration.contract}.</p>}
        {migration.proof && <ProofText proof={migration.proof} alone={migration.contract !== null} />}
        <div class="remarks">
          <Remarks title="For you to change" remarks={migration.unresolved} tone="warn" />
          <Remarks title="Changed" remarks={migration.changes} />
        </div>
        {migration.proof !== null && migration.proof.differences.length > 0 && <Differences proof={migration.proof} />}
      </div>
    </section>
  );
}

function ProofChip({ proof }: { proof: Proof | null }) {
  if (proof === null) return null;
  if (proof.verdict === "proven") return <span class="chip chip-pass">✓ proven</span>;
  if (proof.verdict === "differs") return <span class="chip chip-fail">✗ scores differ</span>;
  return <span class="chip chip-warn">not comparable</span>;
}

function ProofText({ proof, alone }: { proof: Proof; alone: boolean }) {
  const made = proof.generated ? "generated rows" : proof.rows === 1 ? "row" : "rows";
  const left = proof.left_out > 0 ? ` ${proof.left_out} without a correct answer were left out.` : "";
  if (proof.verdict === "not_comparable") return <p>{plain((proof.why ?? "").slice(0, 2000))}{left}</p>;
  if (alone) {
    return (
      <p>
        It scores {proof.scored} of {proof.rows} {made}.
      </p>
    );
  }
  if (proof.verdict === "differs") {
    return (
      <p>
        Old and new code differ on {proof.differing} of {proof.rows} {made}.{left}
      </p>
    );
  }
  return (
    <p>
      Status, score and every metric agree on {proof.rows} {made}; the old code scored {proof.scored} of these rows.{left}
      {proof.generated && <span class="muted"> The host generated these rows from the fields that the code reads. A proof on your own rows is stronger.</span>}
    </p>
  );
}

const MOST_REMARKS = 60;

function Remarks({ title, remarks, tone }: { title: string; remarks: readonly Remark[]; tone?: "warn" }) {
  if (remarks.length === 0) return null;
  return (
    <div>
      <h3 class={tone === "warn" ? "warn" : ""}>{title}</h3>
      <ul class="remark-list">
        {remarks.slice(0, MOST_REMARKS).map((remark, index) => (
          <li key={index}>
            <span class="remark-line muted">{remark.line === null ? "" : `line ${remark.line}`}</span>
            <span>{plain(remark.message.slice(0, 500))}</span>
          </li>
        ))}
        {remarks.length > MOST_REMARKS && <li class="muted">and {remarks.length - MOST_REMARKS} more</li>}
      </ul>
    </div>
  );
}

function Differences({ proof }: { proof: Proof }) {
  return (
    <Table
      label="Rows on which they differ"
      head={
        <>
          <th scope="col" class="number">
            {ROW_HEADING}
          </th>
          <th scope="col">Difference</th>
          <th scope="col">Old</th>
          <th scope="col">New</th>
          <th scope="col">Given</th>
        </>
      }
    >
      {proof.differences.slice(0, 50).map((difference) => (
        <tr key={difference.row}>
          <td class="number">{difference.row}</td>
          <td>{plain(difference.message.slice(0, 400))}</td>
          <td>{outcome(difference.old)}</td>
          <td>{outcome(difference.new)}</td>
          <td>
            <details class="given">
              <summary>Row</summary>
              <pre class="output" tabIndex={0}>{shownJson(difference.given, 3000).text}</pre>
            </details>
          </td>
        </tr>
      ))}
    </Table>
  );
}

function outcome(result: Result): string {
  if (result.error !== null) return `${result.error.code}: ${plain(result.error.message.slice(0, 160))}`;
  return result.score === null ? result.status : shownNumber(result.score);
}
