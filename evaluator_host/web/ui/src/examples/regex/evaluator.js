export function evaluate(inputs, outputs, trace) {
  if (!inputs.pattern) {
    throw new Error("the row has no pattern");
  }
  const match = new RegExp(inputs.pattern, "u").exec(String(outputs ?? ""));
  return { score: match ? 1 : 0, passed: match !== null, reason: match ? `found "${match[0]}"` : "no match" };
}
