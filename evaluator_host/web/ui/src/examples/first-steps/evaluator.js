export function evaluate(inputs, outputs, trace) {
  return outputs === inputs.correct_answer;
}
