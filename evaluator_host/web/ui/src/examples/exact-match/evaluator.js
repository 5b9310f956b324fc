export function evaluate(inputs, outputs, trace) {
  if (!("correct_answer" in inputs)) {
    throw new Error("the row has no correct_answer to compare with");
  }
  // Objects are never identical here: compare those with the example "JSON equality".
  return outputs === inputs.correct_answer;
}
