type Inputs = Record<string, unknown>;

export function evaluate(inputs: Inputs, outputs: unknown, trace: unknown): { score: number; reason: string } {
  const wanted = inputs.expected_fields;
  if (typeof wanted !== "object" || wanted === null) throw new Error("the row has no expected_fields to compare with");
  let found = outputs as Inputs | null;
  if (typeof outputs === "string") {
    try {
      found = JSON.parse(outputs) as Inputs | null;
    } catch {
      return { score: 0, reason: "the output is not JSON" };
    }
  }
  const fields = Object.entries(wanted);
  const wrong = fields.filter(([name, value]) => JSON.stringify(found?.[name]) !== JSON.stringify(value)).map(([name]) => name);
  return { score: fields.length === 0 ? 1 : 1 - wrong.length / fields.length, reason: wrong.length === 0 ? "every field is right" : `wrong: ${wrong.join(", ")}` };
}
