import { useState } from "preact/hooks";
import { call } from "../api/http";
import { Empty } from "../components/empty";
import { ErrorNote } from "../components/error-note";
import { Field } from "../components/field";
import { Spinner } from "../components/spinner";
import { Table } from "../components/table";
import { useLoaded } from "../components/use-loaded";
import { counted } from "../resources/format";
import { PageHead, When } from "../resources/parts";
import { LANGUAGES } from "../page-words";
import { Link, setQuery } from "../router";
import type { PageProps } from "../routes";
import type { EvaluatorReport } from "../api/types";

/** The list of stored evaluators. */
export default function EvaluatorsPage({ query }: PageProps) {
  const found = useLoaded((signal) => call<EvaluatorReport[]>("GET", "/v1/evaluators", { signal }), []);
  const [text, setText] = useState(query.get("find") ?? "");
  const words = text.trim().toLowerCase();
  const shown = (found.value ?? []).filter((one) => `${one.name} ${one.description} ${one.evaluator.language}`.toLowerCase().includes(words));
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
      {found.error !== null && <ErrorNote error={found.error} onRetry={found.reload} />}
      {found.value === null && found.loading && <Spinner label="Loading evaluators" />}
      {found.value?.length === 0 && (
        <Empty title="No stored evaluators yet">
          <p>
            Write one in the <Link to="/">workbench</Link> and save it under a name. Each save creates a version that never changes; jobs and live traces can use it.
          </p>
        </Empty>
      )}
      {shown.length > 0 && <Evaluators evaluators={shown} />}
      {words !== "" && shown.length === 0 && found.value !== null && <Empty title={`No evaluator has “${text.trim()}” in its name or description`} />}
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
      <th scope="col">Updated</th>
    </>
  );
  return (
    <Table label="Evaluators" head={head}>
      {evaluators.map((one) => (
        <tr key={one.name}>
          <th scope="row" class="cell-name">
            <Link to={`/evaluators/${encodeURIComponent(one.name)}`}>{one.name}</Link>
            {one.problem && <span class="chip chip-fail">does not load</span>}
          </th>
          <td class="number">{one.version}</td>
          <td>{LANGUAGES[one.evaluator.language]}</td>
          <td>{one.contract ?? <span class="muted">unknown</span>}</td>
          <td class="nowrap" title={one.evaluator.packages.map(String).join("\n")}>
            {one.evaluator.packages.length === 0 ? <span class="muted">none</span> : counted(one.evaluator.packages.length, "pin")}
          </td>
          <td class="cell-text">{one.description || <span class="muted">–</span>}</td>
          <td>
            <When at={one.created_at} />
          </td>
        </tr>
      ))}
    </Table>
  );
}
