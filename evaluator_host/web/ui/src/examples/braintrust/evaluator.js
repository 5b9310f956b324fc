function handler({ output, expected }) {
  if (expected === null) return null;
  return { name: "exact", score: output === expected ? 1 : 0 };
}
