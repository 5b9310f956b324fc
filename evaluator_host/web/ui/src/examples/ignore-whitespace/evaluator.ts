type Inputs = Record<string, unknown>;

export function evaluate(inputs: Inputs, outputs: unknown, trace: unknown): boolean {
  const expected = normalise(inputs.correct_answer);
  if (!expected) {
    throw new Error("the row has no correct_answer to compare with");
  }
  return normalise(outputs) === expected;
}

function normalise(value: unknown): string {
  const text = String(value ?? "");
  // NFKC also turns full-width letters and no-break spaces into the ordinary ones.
  return text.normalize("NFKC").toLowerCase().split(/\s+/).filter(Boolean).join(" ");
}
