type Inputs = Record<string, unknown>;

export function evaluate(inputs: Inputs, outputs: unknown, trace: unknown): boolean {
  if (!("correct_answer" in inputs)) {
    throw new Error("the row has no correct_answer to compare with");
  }
  // Objects are never identical here: compare those with the example "JSON equality".
  return outputs === inputs.correct_answer;
}
