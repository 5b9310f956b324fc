export function evaluate(inputs, outputs, trace) {
  const budget = Number(inputs.max_seconds ?? 2);
  const seconds = totalSeconds(trace);
  return {
    score: seconds <= budget ? 1 : budget / seconds,
    passed: seconds <= budget,
    seconds,
    reason: `${seconds.toFixed(3)} s of ${budget} s`,
  };
}

/** Add up the root spans; their time includes that of the spans below them. */
function totalSeconds(trace) {
  const durations = Object.values(trace?.spans ?? {})
    .map((span) => span.attributes?.ag?.metrics?.unit?.duration?.total)
    .filter((total) => typeof total === "number");
  if (durations.length === 0) {
    throw new Error("the row has no trace with durations"); // a row without a measurement must not get a good score
  }
  return durations.reduce((sum, total) => sum + total, 0);
}
