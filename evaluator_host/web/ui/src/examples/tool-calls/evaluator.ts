type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
interface Call {
  name?: string;
  arguments?: Json;
  function?: { name?: string; arguments?: Json };
}
type Inputs = { expected_tool_calls?: Call[] };
type Outputs = Call[] | { tool_calls?: Call[] } | string | null;
type Result = { score: number; passed: boolean; missing: number; added: number; reason: string };

export function evaluate(inputs: Inputs, outputs: Outputs, trace: unknown): Result {
  if (!inputs.expected_tool_calls) {
    throw new Error("the row has no expected_tool_calls");
  }
  const expected = inputs.expected_tool_calls.map(asText);
  const made = callsOf(outputs).map(asText);
  const [missing, added] = [without(expected, made), without(made, expected)];
  const total = expected.length + made.length;
  return {
    score: total ? (2 * (expected.length - missing.length)) / total : 1, // no calls were expected, and none were made
    passed: missing.length + added.length === 0,
    missing: missing.length,
    added: added.length,
    reason: `missing: ${missing.join(", ") || "nothing"}; added: ${added.join(", ") || "nothing"}`,
  };
}

function callsOf(outputs: Outputs): Call[] {
  if (outputs === null || typeof outputs !== "object") return [];
  const calls = Array.isArray(outputs) ? outputs : outputs.tool_calls;
  return Array.isArray(calls) ? calls : [];
}

/** Return what is in the first list more often than in the second. */
function without(these: string[], those: string[]): string[] {
  const left = [...those];
  return these.filter((one) => {
    const at = left.indexOf(one);
    if (at < 0) return true;
    left.splice(at, 1);
    return false;
  });
}

/** Return a call as text. Equal calls give the same text, whether they are flat or nested. */
function asText(call: Call | null): string {
  const { name, arguments: given = {} } = call?.function ?? call ?? {};
  let values: Json = given;
  if (typeof given === "string") {
    try {
      values = JSON.parse(given || "{}");
    } catch {
      values = given; // compared as text
    }
  }
  return `${name}(${JSON.stringify(sorted(values))})`;
}

function sorted(value: Json): Json {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key] ?? null)]));
}
