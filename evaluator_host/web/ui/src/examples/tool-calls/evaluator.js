export function evaluate(inputs, outputs, trace) {
  if (!("expected_tool_calls" in inputs)) {
    throw new Error("the row has no expected_tool_calls");
  }
  const expected = inputs.expected_tool_calls.map(asText);
  const calls = Array.isArray(outputs) ? outputs : outputs?.tool_calls;
  const made = (Array.isArray(calls) ? calls : []).map(asText);
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

/** Return what is in the first list more often than in the second. */
function without(these, those) {
  const left = [...those];
  return these.filter((one) => {
    const at = left.indexOf(one);
    if (at < 0) return true;
    left.splice(at, 1);
    return false;
  });
}

/** Return a call as text. Equal calls give the same text, whether they are flat or nested. */
function asText(call) {
  const { name, arguments: given = {} } = call?.function ?? call ?? {};
  let values = given;
  if (typeof given === "string") {
    try {
      values = JSON.parse(given || "{}");
    } catch {
      values = given; // compared as text
    }
  }
  return `${name}(${JSON.stringify(sorted(values))})`;
}

function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}
