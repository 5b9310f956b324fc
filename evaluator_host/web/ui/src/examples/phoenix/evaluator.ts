function evaluate({ output, reference }: { output: string; reference: string }) {
  const right = output === reference;
  return { score: right ? 1 : 0, label: right ? "right" : "wrong", explanation: "compared as text" };
}
