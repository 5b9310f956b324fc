/** Converts traces in any format that the host accepts to a tree of spans with times. */
import { isObject, numberIn } from "../json";

export interface Span {
  id: string;
  name: string;
  /** Milliseconds since the trace began; null if the span has no time. */
  start: number | null;
  duration: number | null;
  failed: boolean;
  tokens: number | null;
  cost: number | null;
  attributes: Record<string, unknown>;
  children: Span[];
}

export interface SpanTree {
  roots: Span[];
  total: number;
  /** Number of spans, and how many of them are in the tree. */
  count: number;
}

const MOST = 2000;

type Fields = Record<string, unknown>;
interface Flat extends Span {
  parent: string | null;
  at: number | null;
}

/** Return the spans of a trace, or null for an unknown format. */
export function spansOf(trace: unknown): SpanTree | null {
  const flat: Flat[] = [];
  if (!isFields(trace)) return null;
  const spans = trace["spans"];
  if (isFields(spans)) nested(spans, null, flat);
  else if (Array.isArray(spans)) for (const span of spans) if (isFields(span)) flat.push(plain(span, String(span["span_id"] ?? flat.length), text(span["parent_id"] ?? span["parent_span_id"])));
  if (flat.length === 0) exported(trace, flat);
  return flat.length === 0 ? null : tree(flat);
}

function nested(spans: Fields | unknown[], parent: string | null, found: Flat[]): void {
  const left: [Fields | unknown[], string | null][] = [[spans, parent]];
  while (left.length > 0) {
    const [some, above] = left.pop()!;
    for (const [key, span] of Object.entries(some)) {
      if (!isFields(span)) {
        if (Array.isArray(span)) left.push([span, above]);
        continue;
      }
      const id = text(span["span_id"]) ?? `${above ?? ""}/${key}#${found.length}`;
      const made = plain(span, id, above);
      if (span["name"] === undefined && !Array.isArray(some)) made.name = key;
      found.push(made);
      for (const below of [span["children"], span["spans"]]) if (isFields(below) || Array.isArray(below)) left.push([below, id]);
    }
  }
}

function exported(trace: Fields, found: Flat[]): void {
  for (const resource of list(trace["resourceSpans"] ?? trace["resource_spans"])) {
    for (const scope of list(resource["scopeSpans"] ?? resource["scope_spans"])) {
      for (const span of list(scope["spans"])) {
        const attributes = Object.fromEntries(list(span["attributes"]).map((one) => [String(one["key"]), otlpValue(one["value"])]));
        const start = nanoseconds(span["startTimeUnixNano"] ?? span["start_time_unix_nano"]);
        const end = nanoseconds(span["endTimeUnixNano"] ?? span["end_time_unix_nano"]);
        const status = isFields(span["status"]) ? span["status"]["code"] : null;
        const tokens = [attributes["gen_ai.usage.input_tokens"], attributes["gen_ai.usage.output_tokens"]].map(number).filter((one) => one !== null);
        found.push({
          id: String(span["spanId"] ?? span["span_id"] ?? found.length),
          parent: text(span["parentSpanId"] ?? span["parent_span_id"]),
          name: text(span["name"]) ?? "span",
          at: start,
          start: null,
          duration: start !== null && end !== null ? end - start : null,
          failed: status === 2 || status === "STATUS_CODE_ERROR",
          tokens: tokens.length > 0 ? tokens.reduce((one, other) => one + other, 0) : null,
          cost: null,
          attributes,
          children: [],
        });
      }
    }
  }
}

function plain(span: Fields, id: string, parent: string | null): Flat {
  const attributes = isFields(span["attributes"]) ? span["attributes"] : {};
  const unit = at(attributes, "ag", "metrics", "unit");
  const cumulative = number(at(attributes, "ag", "metrics", "duration", "cumulative"));
  const start = time(span["start_time"]);
  const end = time(span["end_time"]);
  const seconds = number(at(unit, "duration", "total"));
  const status = String(span["status_code"] ?? at(span, "status", "code") ?? "");
  return {
    id,
    parent,
    name: text(span["name"] ?? span["span_name"]) ?? "span",
    at: start,
    start: null,
    duration: seconds !== null ? seconds * 1000 : (cumulative ?? (start !== null && end !== null ? end - start : null)),
    failed: /error/i.test(status),
    tokens: number(at(unit, "tokens", "total")),
    cost: number(at(unit, "costs", "total")),
    attributes,
    children: [],
  };
}

function tree(flat: Flat[]): SpanTree {
  const shown = flat.slice(0, MOST);
  const begin = Math.min(...shown.map((span) => span.at ?? Infinity));
  const byId = new Map(shown.map((span) => [span.id, span]));
  const roots: Span[] = [];
  for (const span of shown) {
    span.start = span.at === null ? null : span.at - begin;
    const parent = span.parent === null || span.parent === span.id ? undefined : byId.get(span.parent);
    if (parent === undefined || isBelow(parent, span, byId)) roots.push(span);
    else parent.children.push(span);
  }
  for (const span of shown) span.children.sort((one, other) => (one.start ?? 0) - (other.start ?? 0));
  const total = Math.max(1e-3, ...shown.map((span) => (span.start ?? 0) + (span.duration ?? 0)));
  return { roots, total, count: flat.length };
}

/** Whether `span` is already an ancestor of `parent`; a cycle would not be a tree. */
function isBelow(parent: Flat, span: Flat, byId: Map<string, Flat>): boolean {
  let above: Flat | undefined = parent;
  for (let depth = 0; above !== undefined && depth <= byId.size; depth++) {
    if (above === span) return true;
    above = above.parent === null ? undefined : byId.get(above.parent);
  }
  return above !== undefined;
}

function isFields(value: unknown): value is Fields {
  return isObject(value);
}

function list(value: unknown): Fields[] {
  return Array.isArray(value) ? value.filter(isFields) : [];
}

function text(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

function number(value: unknown): number | null {
  const found = typeof value === "string" && value !== "" ? Number(value) : numberIn(value);
  return found !== null && Number.isFinite(found) ? found : null;
}

function at(value: unknown, ...path: string[]): unknown {
  return path.reduce((found: unknown, name) => (isFields(found) ? found[name] : undefined), value);
}

/** A moment in milliseconds: ISO 8601, or a number of seconds, milliseconds or nanoseconds, recognised by their size. */
function time(value: unknown): number | null {
  const given = number(value);
  if (given !== null) return given > 1e17 ? given / 1e6 : given > 1e14 ? given / 1e3 : given > 1e11 ? given : given * 1000;
  const parsed = typeof value === "string" ? Date.parse(value) : NaN;
  return Number.isNaN(parsed) ? null : parsed;
}

function nanoseconds(value: unknown): number | null {
  const given = number(value);
  return given === null ? null : given / 1e6;
}

function otlpValue(value: unknown): unknown {
  if (!isFields(value)) return value;
  const [kind, held] = Object.entries(value)[0] ?? [null, null];
  if (kind === "arrayValue") return list(at(held, "values")).map(otlpValue);
  if (kind === "kvlistValue") return Object.fromEntries(list(at(held, "values")).map((one) => [String(one["key"]), otlpValue(one["value"])]));
  return kind === "intValue" ? Number(held) : held;
}
