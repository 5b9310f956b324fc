import { useState } from "preact/hooks";
import { call } from "../api/http";
import { Button } from "../components/button";
import { ErrorNote } from "../components/error-note";
import { Prose } from "../components/prose";
import { useLoaded } from "../components/use-loaded";
import { Link, setQuery } from "../router";
import { count, oneLine } from "./format";
import { Panel } from "./parts";
import type { FailureGroup, JobReport } from "../api/types";

const FEW = 5;

/** The failed rows, grouped by error. */
export function Failures({ job, evaluator, stamp }: { job: JobReport; evaluator: string; stamp: string }) {
  const found = useLoaded((signal) => call<FailureGroup[]>("GET", `/v1/jobs/${job.id}/failures`, { signal, query: { evaluator } }), [job.id, evaluator, stamp]);
  const [all, setAll] = useState(false);
  const groups = found.value ?? [];
  const only = (code: string) => setQuery({ error: code, status: null, passed: null, cursor: null, at: null });
  return (
    <Panel title="Failures">
      {found.error !== null && <ErrorNote error={found.error} />}
      <ul class="failures stack">
        {(all ? groups : groups.slice(0, FEW)).map((group, index) => (
          <li key={index} class="failure">
            <p class="line">
              <span class="chip chip-fail">{count(group.count)} ×</span>
              <button type="button" class="link-button" title="Show these rows below" onClick={() => only(group.code)}>
                {group.code}
              </button>
              {group.type !== null && <code>{oneLine(group.type, 60)}</code>}
              {group.line !== null && <span class="muted">line {group.line}</span>}
            </p>
            <p class="failure-message">
              <Prose text={oneLine(group.message, 300)} />
            </p>
            {group.hint !== null && (
              <p class="failure-message muted">
                <Prose text={oneLine(group.hint, 300)} />
              </p>
            )}
            <p class="small line muted">
              {group.rows.map((row) => (
                <Link key={row} to={`/jobs/${job.id}/rows/${row}`}>
                  row {count(row)}
                </Link>
              ))}
              {group.count > group.rows.length && <span>and {count(group.count - group.rows.length)} more</span>}
            </p>
          </li>
        ))}
      </ul>
      {groups.length > FEW && !all && (
        <Button kind="quiet" small onClick={() => setAll(true)}>
          {count(groups.length - FEW)} more kinds
        </Button>
      )}
    </Panel>
  );
}
