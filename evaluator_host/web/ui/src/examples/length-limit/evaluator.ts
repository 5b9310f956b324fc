type Inputs = Record<string, unknown>;

export function evaluate(inputs: Inputs, outputs: unknown, trace: unknown): { score: number; words: number; reason: string } {
  const words = String(outputs ?? "").split(/\s+/).filter(Boolean).length;
  const most = Number(inputs.max_words ?? 50);
  return { score: words <= most ? 1 : most / words, words, reason: `${words} words, at most ${most}` };
}
