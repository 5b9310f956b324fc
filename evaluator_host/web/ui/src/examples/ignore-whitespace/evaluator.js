export function evaluate(inputs, outputs, trace) {
  const expected = normalise(inputs.correct_answer);
  if (!expected) {
    throw new Error("the row has no correct_answer to compare with");
  }
  return normalise(outputs) === expected;
}

function normalise(value) {
  const text = String(value ?? "");
  // NFKC also turns full-width letters and no-break spaces into the ordinary ones.
  return text.normalize("NFKC").toLowerCase().split(/\s+/).filter(Boolean).join(" ");
}
