import { useEffect, useState } from "preact/hooks";
import { call } from "../api/http";
import { Button } from "../components/button";
import { Empty } from "../components/empty";
import { ErrorNote } from "../components/error-note";
import { Field } from "../components/field";
import { Spinner } from "../components/spinner";
import { Table } from "../components/table";
import { useLoaded } from "../components/use-loaded";
import { count, counted, rounded } from "../resources/format";
import { PageHead, Tags, When } from "../resources/parts";
import { SampleButton } from "../resources/sample-button";
import { SavedFilters } from "../resources/saved-filters";
import { LANGUAGES } from "../page-words";
import { Link, setQuery } from "../router";
import type { PageProps } from "../routes";
import type { EvaluatorReport } from "../api/types";

/** The list of stored evaluators. */
export default function EvaluatorsPage({ query }: PageProps) {
  const found = useLoaded((signal) => call<EvaluatorReport[]>("GET", "/v1/evaluators", { signal }), []);
  const [text, setText] = useState(query.get("find") ?? "");
  const asked = query.get("find") ?? "";
  useEffect(() => setText(asked), [asked]);
  const words = text.trim().toLowerCase();
  const tag = query.get("tag");
  const tags = [...new Set((found.value ?? []).flatMap((one) => one.tags))].sort();
  const shown = (found.value ?? [])
    .filter((one) => (tag === null || one.tags.includes(tag)) && textOf(one).includes(words))
    .sort((one, other) => one.name.localeCompare(other.name, undefined, { numeric: true }));
  const find = (value: string) => {
    setText(value);
    setQuery({ find: value });
  };
  return (
    <div class="page">
      <PageHead title="Evaluators">
        {found.value !== null && found.value.length > 0 && <Field label="Find an evaluator" bare type="search" placeholder="Find…" value={text} onValue={find} />}
        <Link to="/judge" class="button button-plain">
          New judge
        </Link>
        <Link to="/" class="button button-primary">
          New evaluator
        </Link>
      </PageHead>
      <SavedFilters list="evaluators" names={["tag", "find"]} />
      {found.error !== null && <ErrorNote error={found.error} onRetry={found.reload} />}
      {found.value === null && found.loading && <Spinner label="Loading evaluators" />}
      {found.value?.length === 0 && (
        <Empty title="No stored evaluators yet">
          <p>
            Write one in the <Link to="/">workbench</Link> and save it under a name. Each save creates a version that never changes; jobs and live traces can use it.
          </p>
          <SampleButton />
        </Empty>
      )}
      {tags.length > 0 && <TagFilter tags={tags} chosen={tag} />}
      {shown.length > 0 && <Evaluators evaluators={shown} />}
      {found.value !== null && found.value.length > 0 && shown.length === 0 && (
        <Empty title={tag === null ? `No evaluator has “${text.trim()}” in its name, tags or description` : `No evaluator with the tag ${tag}${words && ` has “${text.trim()}” in its name or description`}`}>
          <Button onClick={() => (setText(""), setQuery({ find: null, tag: null }))}>Show all evaluators</Button>
        </Empty>
      )}
    </div>
  );
}

function textOf(one: EvaluatorReport): string {
  return [one.name, one.description, one.evaluator.language, one.author ?? "", ...one.tags].join(" ").toLowerCase();
}

function TagFilter({ tags, chosen }: { tags: readonly string[]; chosen: string | null }) {
  return (
    <div class="chips" role="group" aria-label="Tags">
      {tags.map((tag) => (
        <button key={tag} type="button" class="chip chip-button" aria-pressed={tag === chosen} onClick={() => setQuery({ tag: tag === chosen ? null : tag })}>
          {tag}
        </button>
      ))}
    </div>
  );
}

function Evaluators({ evaluators }: { evaluators: readonly EvaluatorReport[] }) {
  const head = (
    <>
      <th scope="col">Name</th>
      <th scope="col" class="number">Version</th>
      <th scope="col">Language</th>
      <th scope="col">Contract</th>
      <th scope="col">Packages</th>
      <th scope="col">Description</th>
      <th scope="col">Last job</th>
      <th scope="col">Updated</th>
    </>
  );
  return (
    <Table label="Evaluators" head={head} class="table-brief">
      {evaluators.map((one) => (
        <tr key={one.name}>
          <th scope="row" class="cell-name">
            <Link to={`/evaluators/${encodeURIComponent(one.name)}`}>{one.name}</Link>
            {one.problem && <span class="chip chip-fail">does not load</span>}
            <Tags tags={one.tags} />
          </th>
          <td class="number">
            <span class="brief-word">version </span>
            {one.version}
          </td>
          <td>{LANGUAGES[one.evaluator.language]}</td>
          <td class="cell-minor">{one.contract ?? <span class="muted">unknown</span>}</td>
          <td class="cell-minor nowrap" title={one.evaluator.packages.map(String).join("\n")}>
            {one.evaluator.packages.length === 0 ? <span class="muted">none</span> : counted(one.evaluator.packages.length, "pin")}
          </td>
          <td class={one.description === "" ? "cell-minor" : "cell-text"}>{one.description || <span class="muted">–</span>}</td>
          <td class="nowrap">
            <Last of={one.last_job} />
          </td>
          <td class="cell-minor">
            <When at={one.created_at} />
            {one.author !== null && <span class="muted"> by {one.author}</span>}
          </td>
        </tr>
      ))}
    </Table>
  );
}

function Last({ of }: { of: EvaluatorReport["last_job"] }) {
  if (of === null) return <span class="muted">no job yet</span>;
  return (
    <Link to={`/jobs/${of.job}`} title={`${of.score.evaluator}: the mean of its newest job, over ${count(of.score.mean_rows)} of ${count(of.score.rows)} rows`}>
      {of.score.mean !== null ? <strong class={of.score.doubt === null ? "" : "warn"}>{`${rounded(of.score.mean)}${of.score.doubt === null ? "" : ", doubtful"}${of.finished_at === null ? ", so far" : ""} `}</strong> : of.score.failed > 0 && <span class="fail">all failed </span>}
      <When at={of.created_at} />
    </Link>
  );
}
