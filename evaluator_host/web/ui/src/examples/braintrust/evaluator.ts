export function handler({ output, expected }: { output: string; expected: string | null }) {
  if (expected === null) return null;
  return { name: "exact", score: output === expected ? 1 : 0 };
}
