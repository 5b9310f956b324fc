type Inputs = Record<string, unknown>;

export function evaluate(inputs: Inputs, outputs: unknown, trace: unknown): { score: number; value?: number; reason: string } {
  if (!("correct_answer" in inputs)) throw new Error("the row has no correct_answer to compare with");
  const expected = Number(String(inputs.correct_answer).trim() || NaN);
  if (Number.isNaN(expected)) throw new Error("correct_answer is not a number");
  const found = String(outputs ?? "").match(/-?\d[\d,]*(\.\d+)?/);
  if (found === null) return { score: 0, reason: "no number in the output" };
  const value = Number(found[0].replaceAll(",", ""));
  const tolerance = Number(inputs.tolerance ?? 0.01) * Math.max(Math.abs(expected), 1e-9);
  return { score: Math.abs(value - expected) <= tolerance ? 1 : 0, value, reason: `${value} against ${expected}` };
}
