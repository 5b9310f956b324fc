type Inputs = Record<string, unknown>;

export function evaluate(inputs: Inputs, outputs: unknown, trace: unknown): boolean {
  return outputs === inputs.correct_answer;
}
