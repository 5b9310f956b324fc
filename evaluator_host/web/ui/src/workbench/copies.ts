/** Renders a run as a curl command or as a Python program that uses the client. */
import type { EvaluatorIn, Row } from "../api/types";

/** A curl command for a POSIX shell. */
export function asCurl(evaluator: EvaluatorIn, row: Row, { origin, withKey }: { origin: string; withKey: boolean }): string {
  const body = JSON.stringify({ evaluator, ...row }, null, 2);
  const key = withKey ? ` \\\n  -H "Authorization: Bearer $EVALUATOR_HOST_KEY"` : "";
  return `curl -s ${origin}/v1/evaluate -H 'Content-Type: application/json'${key} -d '${body.replaceAll("'", `'\\''`)}'\n`;
}

/** A complete program, which needs evaluator-host installed. */
export function asPython(evaluator: EvaluatorIn, row: Row, { origin, withKey }: { origin: string; withKey: boolean }): string {
  const names = new Set(["Client", "Evaluator"]);
  const given = [`    ${codeLiteral(evaluator.code)},`];
  if (evaluator.language !== undefined && evaluator.language !== "python") {
    names.add("Language");
    given.push(`    language=Language.${evaluator.language.toUpperCase()},`);
  }
  if (evaluator.contract !== undefined && evaluator.contract !== "auto") {
    names.add("Contract");
    given.push(`    contract=Contract(${JSON.stringify(evaluator.contract)}),`);
  }
  const pins = [evaluator.packages ?? []].flat();
  if (pins.length > 0) given.push(`    packages=(${pins.map((pin) => `${JSON.stringify(pin)},`).join(" ")}),`);
  if (evaluator.files !== undefined) given.push(`    files=${literal(evaluator.files)},`);
  if (evaluator.data !== undefined) given.push(`    data=${literal(evaluator.data)},`);
  if (evaluator.path) given.push(`    path=${JSON.stringify(evaluator.path)},`);
  if (evaluator.threshold !== undefined && evaluator.threshold !== null) given.push(`    threshold=${literal(evaluator.threshold)},`);
  if (evaluator.settings !== undefined) {
    names.add("EvaluatorSettings");
    given.push(`    settings=EvaluatorSettings(${keywords(evaluator.settings)}),`);
  }
  if (evaluator.limits !== undefined) {
    names.add("Limits");
    given.push(`    limits=Limits(${keywords(evaluator.limits)}),`);
  }
  if (evaluator.policy === "restricted") {
    names.add("Policy");
    given.push("    policy=Policy.RESTRICTED,");
  }
  const rowArguments = Object.entries(row).map(([name, value]) => `        ${name}=${literal(value, "        ")},\n`).join("");
  const key = withKey ? `, key=os.environ["EVALUATOR_HOST_KEY"]` : "";
  return `${withKey ? "import os\n\n" : ""}from evaluator_host import ${[...names].sort().join(", ")}

EVALUATOR = Evaluator(
${given.join("\n")}
)

with Client(${JSON.stringify(origin)}${key}) as client:
    result = client.evaluate(
        EVALUATOR,
${rowArguments}    )
    print(result.score, result.passed, result.reason or result.error)
`;
}

function keywords(values: object): string {
  return Object.entries(values).map(([name, value]) => `${name}=${literal(value)}`).join(", ");
}

/** Code in triple quotes if these keep it unchanged, else as one escaped line. */
function codeLiteral(code: string): string {
  const readable = !code.includes('"""') && !code.includes("\\") && !code.endsWith('"') && /^[\t\n\u0020-\u007e\u00a1-\uffff]*$/.test(code) && !/[\ud800-\udfff]/.test(code);
  return readable ? `"""\\\n${code}"""` : JSON.stringify(code);
}

/** A JSON value as Python writes it. JSON's escapes of text are Python's too. */
function literal(value: unknown, indent = "    "): string {
  if (value === null || value === undefined) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const deeper = `${indent}    `;
  const parts = Array.isArray(value)
    ? value.map((one) => literal(one, deeper))
    : Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${literal(one, deeper)}`);
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  const short = `${open}${parts.join(", ")}${close}`;
  if (short.length <= 80 && !short.includes("\n")) return short;
  return `${open}\n${parts.map((part) => `${deeper}${part},\n`).join("")}${indent}${close}`;
}
