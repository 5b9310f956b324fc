/** Formats code as Ruff and Prettier do. This module is loaded only with `import()`, and each formatter when it is first used. */
import type { Syntax } from "./mirror";

const WIDTH = 100;

/** The formatted text; if the text cannot be parsed, the error names the place. */
export async function formatted(text: string, syntax: Syntax): Promise<string> {
  if (syntax === "text") return text;
  if (syntax === "python") {
    const [{ default: start, format }, { default: address }] = await Promise.all([import("@wasm-fmt/ruff_fmt/web"), import("@wasm-fmt/ruff_fmt/wasm")]);
    await start(address);
    return format(text, "evaluator.py", { line_width: WIDTH });
  }
  const [prettier, babel, estree] = await Promise.all([import("prettier/standalone"), import("prettier/plugins/babel"), import("prettier/plugins/estree")]);
  const parser = syntax === "typescript" ? "babel-ts" : syntax === "json" ? "json" : "babel";
  return prettier.format(text, { parser, plugins: [babel, estree.default], printWidth: WIDTH });
}
