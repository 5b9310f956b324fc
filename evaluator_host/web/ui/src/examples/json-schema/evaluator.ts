import { Ajv2020 } from "ajv/dist/2020.js";

const ajv = new Ajv2020({ allErrors: true, strict: false });

type Inputs = { schema?: object | boolean | null };
type Result = { score: number; passed: boolean; violations: number; reason: string };

export function evaluate(inputs: Inputs, outputs: unknown, trace: unknown): Result {
  if (inputs.schema === undefined || inputs.schema === null) {
    throw new Error("the row has no schema");
  }
  const validate = ajv.compile(inputs.schema); // a bad schema is an error of the row, not of the output
  let document: unknown;
  try {
    document = typeof outputs === "string" ? JSON.parse(outputs) : outputs;
  } catch (error) {
    return { score: 0, passed: false, violations: 1, reason: `not JSON: ${(error as Error).message}` };
  }
  const fits = validate(document);
  const violations = (validate.errors ?? []).map((one) => `$${one.instancePath}: ${one.message}`);
  return {
    score: fits ? 1 : 0,
    passed: fits,
    violations: violations.length,
    reason: violations.slice(0, 5).join("; ") || "fits the schema",
  };
}
