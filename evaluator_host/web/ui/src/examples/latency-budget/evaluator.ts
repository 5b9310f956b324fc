interface Span {
  attributes?: { ag?: { metrics?: { unit?: { duration?: { total?: number } } } } };
}
interface Trace {
  spans?: Record<string, Span>;
}
type Result = { score: number; passed: boolean; seconds: number; reason: string };

export function evaluate(inputs: Record<string, unknown>, outputs: unknown, trace: Trace | null): Result {
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
function totalSeconds(trace: Trace | null): number {
  const durations = Object.values(trace?.spans ?? {})
    .map((span) => span.attributes?.ag?.metrics?.unit?.duration?.total)
    .filter((total) => typeof total === "number");
  if (durations.length === 0) {
    throw new Error("the row has no trace with durations"); // a row without a measurement must not get a good score
  }
  return durations.reduce((sum, total) => sum + total, 0);
}
