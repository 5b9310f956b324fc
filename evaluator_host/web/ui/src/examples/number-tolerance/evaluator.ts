type Inputs = Record<string, unknown>;

const NUMBER = /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$/;

function number(value: unknown, name: string): number {
  const text = Array.isArray(value) ? "" : String(value).trim();
  const found = NUMBER.test(text) ? Number(text) : NaN;
  if (!Number.isFinite(found)) throw new Error(`${name} is not a number`);
  return found;
}

export function evaluate(inputs: Inputs, outputs: unknown, trace: unknown): { score: number; value?: number; reason: string } {
  if (!("correct_answer" in inputs)) throw new Error("the row has no correct_answer to compare with");
  const expected = number(inputs.correct_answer, "correct_answer");
  const found = String(outputs ?? "").match(/-?[0-9][0-9,]*(\.[0-9]+)?([eE][+-]?[0-9]+)?/);
  if (found === null) return { score: 0, reason: "no number in the output" };
  const value = Number(found[0].replaceAll(",", ""));
  const tolerance = number("tolerance" in inputs ? inputs.tolerance : 0.01, "tolerance") * Math.max(Math.abs(expected), 1e-9);
  return { score: Math.abs(value - expected) <= tolerance ? 1 : 0, value, reason: `${value} against ${expected}` };
}
