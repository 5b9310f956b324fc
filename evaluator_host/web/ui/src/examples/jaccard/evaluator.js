export function evaluate(inputs, outputs, trace) {
  const expected = words(inputs.correct_answer);
  if (expected.size === 0) {
    throw new Error("the row has no correct_answer to compare with");
  }
  const found = words(outputs);
  const missing = [...expected].filter((word) => !found.has(word)).sort();
  const added = [...found].filter((word) => !expected.has(word));
  return {
    score: (expected.size - missing.length) / (expected.size + added.length),
    missing: missing.length,
    added: added.length,
    reason: `missing: ${missing.join(", ") || "nothing"}`,
  };
}

function words(value) {
  return new Set(String(value ?? "").toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? []);
}
