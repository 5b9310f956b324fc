import { useEffect, useState } from "preact/hooks";
import { call } from "../api/http";
import { Button } from "../components/button";
import { Dialog } from "../components/dialog";
import { Empty } from "../components/empty";
import { ErrorNote } from "../components/error-note";
import { Spinner } from "../components/spinner";
import { Table } from "../components/table";
import { Link, setQuery } from "../router";
import { useLoaded } from "../components/use-loaded";
import { AddToDataset } from "../resources/add-to-dataset";
import { counted, milliseconds, oneLine, shortId, wordsOf } from "../resources/format";
import { Score, Verdict, When } from "../resources/parts";
import { ResultView } from "../resources/result-view";
import { spansOf } from "../resources/spans";
import { SpanTree } from "../resources/span-tree";
import type { TraceReport } from "../api/types";

const PAGE = 50;

/** Traces of live traffic that an evaluator scored, the newest first. */
export function Traces({ name, chosen }: { name: string; chosen: string | null }) {
  const route = `/v1/evaluators/${encodeURIComponent(name)}/traces`;
  const found = useLoaded((signal) => call<TraceReport[]>("GET", route, { signal, query: { limit: PAGE } }), [name]);
  const [older, setOlder] = useState<TraceReport[]>([]);
  const [more, setMore] = useState(true);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => setOlder([]), [name, found.value]);
  const traces = [...(found.value ?? []), ...older];
  const last = traces.at(-1);
  const loadMore = async () => {
    try {
      const next = await call<TraceReport[]>("GET", route, { query: { limit: PAGE, before: last?.number } });
      setOlder([...older, ...next]);
      setMore(next.length === PAGE);
      setError(null);
    } catch (problem) {
      setError(problem);
    }
  };
  if (found.error !== null) return <ErrorNote error={found.error} onRetry={found.reload} />;
  if (found.value === null) return <Spinner label="Loading traces" />;
  if (traces.length === 0) {
    return (
      <Empty title="No live trace has been scored yet">
        <p>Point an OpenTelemetry exporter (OTLP over HTTP) to this address. Each trace is scored once it is complete.</p>
        <code class="wrap">{`${location.origin}${route}`}</code>
        <Button small onClick={found.reload}>
          Refresh
        </Button>
      </Empty>
    );
  }
  return (
    <>
      <div class="record-bar line">
        <Button small onClick={found.reload} busy={found.loading}>
          Refresh
        </Button>
      </div>
      <TraceTable traces={traces} />
      {error !== null && <ErrorNote error={error} />}
      {more && traces.length >= PAGE && <Button onClick={() => void loadMore()}>Load older traces</Button>}
      {chosen !== null && <TraceDialog name={name} number={chosen} known={traces.find((one) => String(one.number) === chosen)} />}
    </>
  );
}

function TraceTable({ traces }: { traces: readonly TraceReport[] }) {
  const head = (
    <>
      <th scope="col">Trace</th>
      <th scope="col">Received</th>
      <th scope="col">Version</th>
      <th scope="col" class="number">Score</th>
      <th scope="col">Outcome</th>
      <th scope="col">Reason</th>
      <th scope="col" class="number">Run time</th>
    </>
  );
  return (
    <Table label="Live traces" head={head}>
      {traces.map((trace) => (
        <tr key={trace.number}>
          <th scope="row" class="cell-name">
            <TraceName trace={trace} />
          </th>
          <td>
            <When at={trace.received_at} />
          </td>
          <td class="nowrap">{trace.evaluator}</td>
          <td class="number">
            <Score value={trace.result.score} />
          </td>
          <td>
            <Verdict result={trace.result} />
          </td>
          <td class="cell-text">{oneLine(wordsOf(trace.result))}</td>
          <td class="number nowrap">{milliseconds(trace.result.timing_ms.run)}</td>
        </tr>
      ))}
    </Table>
  );
}

/** Attributes that hold an application's question and answer: those of OpenInference, and those that the host stores. */
const SAID = [
  ["input.value", "inputs"],
  ["output.value", "outputs"],
] as const;

function keptOf(attributes: Record<string, unknown>): Record<string, unknown> {
  const { ag } = attributes as { ag?: { data?: Record<string, unknown> } };
  return ag?.data ?? {};
}

/** A trace: the name of its first span, and its duration. */
function TraceName({ trace }: { trace: TraceReport }) {
  const spans = spansOf(trace.trace);
  const root = spans?.roots[0];
  const said = root === undefined ? [] : SAID.map(([key, kept]) => root.attributes[key] ?? keptOf(root.attributes)[kept]).filter((one) => one !== undefined && one !== null).map((one) => oneLine(one, 160));
  return (
    <>
      <button type="button" class="link-button" title={trace.trace_id} onClick={() => setQuery({ trace: String(trace.number) })}>
        {root === undefined ? `Trace ${trace.number}` : oneLine(root.name, 60)}
      </button>
      <p class="muted">
        <span class="mono">{shortId(trace.trace_id)}</span>
        {spans !== null && ` · ${counted(spans.count, "span")}`}
        {root !== undefined && root.duration !== null && `, ${milliseconds(root.duration)}`}
      </p>
      {said.length > 0 && <p class="clamped muted trace-said">{said.join(" → ")}</p>}
    </>
  );
}

function TraceDialog({ name, number, known }: { name: string; number: string; known: TraceReport | undefined }) {
  const route = `/v1/evaluators/${encodeURIComponent(name)}/traces`;
  const load = async (signal: AbortSignal) => known ?? (await call<TraceReport[]>("GET", route, { signal, query: { before: Number(number) + 1, limit: 1 } }))[0] ?? null;
  const found = useLoaded(load, [number, known]);
  const close = () => setQuery({ trace: null });
  const open = (
    <>
      <AddToDataset source={{ evaluator: name, traces: [Number(number)] }} onAdded={close} />
      <Link to={`/?evaluator=${encodeURIComponent(name)}&trace=${encodeURIComponent(number)}`} class="button button-primary">
        Use in the workbench
      </Link>
    </>
  );
  return (
    <Dialog title={`Trace ${number}`} wide onClose={close} actions={open}>
      {found.error !== null && <ErrorNote error={found.error} />}
      {!found.loading && found.value === null && found.error === null && <p class="muted">This trace no longer exists.</p>}
      {found.value && (
        <>
          <ResultView result={found.value.result} />
          <SpanTree trace={found.value.trace} label="Spans" />
        </>
      )}
    </Dialog>
  );
}
