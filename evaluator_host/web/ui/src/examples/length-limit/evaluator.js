export function evaluate(inputs, outputs, trace) {
  const words = String(outputs ?? "").split(/\s+/).filter(Boolean).length;
  const most = Number(inputs.max_words ?? 50);
  return { score: words <= most ? 1 : most / words, words, reason: `${words} words, at most ${most}` };
}
