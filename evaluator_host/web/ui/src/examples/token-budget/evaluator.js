export function evaluate(inputs, outputs, trace) {
  const budget = Number(inputs.max_tokens ?? 1000);
  const tokens = sum(Object.values(trace?.spans ?? {}).map(total));
  if (tokens === null) {
    throw new Error("the row has no trace with token counts"); // a row without a measurement must not get a good score
  }
  return {
    score: tokens <= budget ? 1 : budget / tokens,
    passed: tokens <= budget,
    tokens,
    reason: `${tokens} tokens of ${budget}`,
  };
}

/**
 * Return the token counts of a span, null if they are unknown. A span's own total includes the spans below it.
 * If it has no total, the spans below it are added up.
 */
function total(span) {
  return span.attributes?.ag?.metrics?.unit?.tokens?.total ?? sum((span.children ?? []).map(total));
}

function sum(counts) {
  const known = counts.filter((count) => count !== null);
  return known.length === 0 ? null : known.reduce((one, other) => one + other, 0);
}
