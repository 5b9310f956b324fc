/** A trace as a tree of spans with their times as bars. */
import { useMemo, useState } from "preact/hooks";
import { count, counted, rounded, milliseconds } from "./format";
import { spansOf, type Span, type SpanTree as Tree } from "./spans";
import { Value } from "./value";

interface Line {
  span: Span;
  depth: number;
}

/** The spans of a trace; a trace in an unknown format is shown as JSON. */
export function SpanTree({ trace, label }: { trace: unknown; label: string }) {
  const tree = useMemo(() => spansOf(trace), [trace]);
  const [raw, setRaw] = useState(false);
  if (trace === null || trace === undefined) return <p class="muted value-none">no trace</p>;
  if (tree === null) return <Value label={label} value={trace} />;
  return (
    <div class="stack">
      {raw ? <Value label={label} value={trace} /> : <Spans tree={tree} label={label} />}
      <p class="plot-foot">
        <span class="plot-note small">
          {counted(tree.count, "span")}, {milliseconds(tree.total)}
        </span>
        <button type="button" class="button button-quiet button-small" onClick={() => setRaw(!raw)}>
          {raw ? "As a tree" : "As JSON"}
        </button>
      </p>
    </div>
  );
}

function Spans({ tree, label }: { tree: Tree; label: string }) {
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const [chosen, setChosen] = useState<Span | null>(null);
  const lines = useMemo(() => opened(tree.roots, closed), [tree, closed]);
  const toggle = (id: string) => {
    const next = new Set(closed);
    if (!next.delete(id)) next.add(id);
    setClosed(next);
  };
  return (
    <>
      <ul class="spans" aria-label={label}>
        {lines.map((line) => (
          <SpanLine key={line.span.id} line={line} total={tree.total} open={!closed.has(line.span.id)} chosen={chosen === line.span} onToggle={() => toggle(line.span.id)} onChoose={() => setChosen(chosen === line.span ? null : line.span)} />
        ))}
      </ul>
      {tree.count > 2000 && <p class="muted">Only the first 2,000 of {count(tree.count)} spans are shown. The JSON has all of them.</p>}
      {chosen && <Value label={`Attributes of ${chosen.name}`} value={chosen.attributes} />}
    </>
  );
}

interface SpanLineProps {
  line: Line;
  total: number;
  open: boolean;
  chosen: boolean;
  onToggle: () => void;
  onChoose: () => void;
}

function SpanLine({ line: { span, depth }, total, open, chosen, onToggle, onChoose }: SpanLineProps) {
  const left = Math.min(99, Math.max(0, ((span.start ?? 0) / total) * 100));
  const width = Math.min(100 - left, Math.max(0.6, ((span.duration ?? 0) / total) * 100));
  const more = [span.tokens !== null && `${count(span.tokens)} tokens`, span.cost !== null && `$${rounded(span.cost)}`].filter(Boolean).join(", ");
  return (
    <li class={`span-line ${chosen ? "span-chosen" : ""}`}>
      <span class="span-name" style={{ paddingLeft: `${Math.min(depth, 12) * 14}px` }}>
        {span.children.length > 0 ? (
          <button type="button" class="span-toggle" aria-expanded={open} aria-label={`What is in ${span.name}`} onClick={onToggle}>
            <span aria-hidden="true">{open ? "▾" : "▸"}</span>
          </button>
        ) : (
          <span class="span-toggle" />
        )}
        <button type="button" class="span-choose cut" aria-expanded={chosen} onClick={onChoose}>
          {span.name}
          {span.failed && <span class="visually-hidden"> (failed)</span>}
        </button>
      </span>
      <span class="span-more cut muted">{more}</span>
      <span class="span-track" aria-hidden="true">
        {span.duration !== null && <span class={span.failed ? "span-bar span-failed" : "span-bar"} style={{ left: `${left}%`, width: `${width}%` }} />}
      </span>
      <span class="span-time number">{milliseconds(span.duration)}</span>
    </li>
  );
}

function opened(roots: readonly Span[], closed: ReadonlySet<string>): Line[] {
  const lines: Line[] = [];
  const left: Line[] = roots.map((span) => ({ span, depth: 0 })).reverse();
  while (left.length > 0) {
    const line = left.pop()!;
    lines.push(line);
    if (!closed.has(line.span.id)) left.push(...line.span.children.map((span) => ({ span, depth: line.depth + 1 })).reverse());
  }
  return lines;
}
