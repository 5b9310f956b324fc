export function evaluate(inputs, outputs, trace) {
  const budget = Number(inputs.max_cost ?? 0.01);
  const cost = sum(Object.values(trace?.spans ?? {}).map(total));
  if (cost === null) {
    throw new Error("the row has no trace with costs"); // a row without a measurement must not get a good score
  }
  return {
    score: cost <= budget ? 1 : budget / cost,
    passed: cost <= budget,
    cost,
    reason: `$${cost.toFixed(4)} of $${budget.toFixed(4)}`,
  };
}

/**
 * Return the costs of a span, null if they are unknown. A span's own total includes the spans below it.
 * If it has no total, the spans below it are added up.
 */
function total(span) {
  return span.attributes?.ag?.metrics?.unit?.costs?.total ?? sum((span.children ?? []).map(total));
}

function sum(counts) {
  const known = counts.filter((count) => count !== null);
  return known.length === 0 ? null : known.reduce((one, other) => one + other, 0);
}
