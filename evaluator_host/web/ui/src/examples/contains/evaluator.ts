type Inputs = Record<string, unknown>;

export function evaluate(inputs: Inputs, outputs: unknown, trace: unknown): { score: number; passed: boolean; reason: string } {
  if (!("correct_answer" in inputs)) throw new Error("the row has no correct_answer to look for");
  const expected = String(inputs.correct_answer).toLowerCase();
  const found = String(outputs ?? "").toLowerCase().includes(expected);
  return { score: Number(found), passed: found, reason: `"${expected}" is ${found ? "" : "not "}in the output` };
}
