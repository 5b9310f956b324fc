/** Narrows the rows of a comparison to those that a search in the later job finds. */
import { useEffect, useState } from "preact/hooks";
import { call } from "../api/http";
import type { JobRowPage } from "../api/types";
import { Button } from "../components/button";
import { ErrorNote } from "../components/error-note";
import { Field, Select } from "../components/field";
import { type Loaded, useLoaded } from "../components/use-loaded";
import { setQuery } from "../router";
import { count } from "./format";

const REQUESTS = 20; // maximum number of requests of a search; each one reads 5,000 results, or finds 1,000
const OUTCOMES = {
  passed: { label: "Passes in the later job", asked: { passed: true } },
  "not-passed": { label: "Does not pass in the later job", asked: { passed: false } },
  failed: { label: "Fails in the later job", asked: { status: "failed" } },
} as const;

interface Found {
  rows: ReadonlySet<number>;
  /** Whether the search reached the end of the job. */
  whole: boolean;
}

/** The rows that match the filters of the address; null without a filter. `evaluator` is one of the job's, or null for all. */
export function useFoundRows(job: string, evaluator: string | null, query: URLSearchParams): Loaded<Found | null> {
  const text = query.get("text");
  const outcome = query.get("outcome");
  return useLoaded(
    async (signal) => {
      if (text === null && outcome === null) return null;
      const rows = new Set<number>();
      let cursor: string | null = null;
      for (let n = 0; n < REQUESTS; n++) {
        const asked = outcome !== null && outcome in OUTCOMES ? OUTCOMES[outcome as keyof typeof OUTCOMES].asked : {};
        const page: JobRowPage = await call<JobRowPage>("GET", `/v1/jobs/${encodeURIComponent(job)}/rows`, { signal, query: { evaluator, text, ...asked, cursor, limit: 1000, brief: true } });
        for (const { index } of page.rows) rows.add(index);
        cursor = page.next_cursor;
        if (cursor === null) break;
      }
      return { rows, whole: cursor === null };
    },
    [job, evaluator, text, outcome],
  );
}

/** A text and an outcome that narrow down the changed rows. */
export function FindRows({ query, found }: { query: URLSearchParams; found: Loaded<Found | null> }) {
  const [text, setText] = useState(query.get("text") ?? "");
  useEffect(() => setText(query.get("text") ?? ""), [query.get("text")]);
  const submit = (event: Event) => {
    event.preventDefault();
    setQuery({ text: text.trim() || null });
  };
  return (
    <>
      <form class="filters line" onSubmit={submit} aria-label="Which rows">
        <Field label="Find text in rows" bare type="search" placeholder="Find text…" value={text} onValue={(value) => (setText(value), value === "" && query.has("text") && setQuery({ text: null }))} />
        <Button type="submit" busy={found.loading && query.has("text")}>
          Find
        </Button>
        <Select label="Outcome" bare value={query.get("outcome") ?? ""} onValue={(value) => setQuery({ outcome: value || null })} options={[{ value: "", label: "All outcomes" }, ...Object.entries(OUTCOMES).map(([value, { label }]) => ({ value, label }))]} />
        {found.value && !found.value.whole && <span class="muted">The search ended after {count(found.value.rows.size)} rows: narrow it down.</span>}
      </form>
      {found.error !== null && <ErrorNote title="The rows could not be searched" error={found.error} onRetry={found.reload} />}
    </>
  );
}
