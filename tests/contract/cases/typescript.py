"""Cases in TypeScript: types are removed and never checked, but TypeScript syntax that has an effect at run time works."""

from tests.contract.cases.case import failed, scored, typescript

PASSED = scored(1.0, passed=True)

CASES = [
    typescript("types", "type Row = Record<string, unknown>;\ninterface Out { text: string }\nfunction evaluate(inputs: Row, outputs: Out, trace: any): boolean {\n  return (outputs as Out).text === inputs.want!;\n}", PASSED, inputs={"want": "a"}, outputs={"text": "a"}),
    typescript("enum", "enum Grade { Bad, Good = 5, Best }\nconst evaluate = (i: any, o: any, t: any): boolean => Grade.Best === 6 && Grade[0] === 'Bad';", PASSED),
    typescript("const-enum", "const enum Level { Low = 1, High = 2 }\nfunction evaluate(i: any, o: any, t: any) { return Level.High / 4; }", scored(0.5)),
    typescript("namespace", "namespace Scoring {\n  export const half = 0.5;\n  export namespace Inner { export const double = half * 2; }\n}\nfunction evaluate(i: any, o: any, t: any) { return Scoring.Inner.double - Scoring.half; }", scored(0.5)),
    typescript("decorator", "const seen: string[] = [];\nfunction noted(...args: any[]): any { seen.push('method'); }\nclass Scorer {\n  @noted\n  score() { return seen.length; }\n}\nfunction evaluate(i: any, o: any, t: any) { return new Scorer().score(); }", scored(1)),
    typescript("parameter-property", "class Scorer {\n  constructor(private readonly base: number, public factor = 2) {}\n  score() { return this.base * this.factor; }\n}\nconst evaluate = (i: any, o: any, t: any) => new Scorer(0.25).score();", scored(0.5)),
    typescript("satisfies", "const weights = { exact: 0.5 } satisfies Record<string, number>;\nfunction evaluate(i: any, o: any, t: any) { return weights.exact; }", scored(0.5)),
    typescript("import-type", "import type { Hash } from 'node:crypto';\nimport { type Cipher, createHash } from 'node:crypto';\nfunction evaluate(i: any, o: any, t: any): boolean {\n  const hash: Hash = createHash('sha1');\n  return hash.digest('hex').length === 40;\n}", PASSED),
    typescript("import-forms", "import * as path from 'path';\nimport assert, { equal } from 'node:assert';\nimport { sep } from 'node:path/posix';\nfunction evaluate(i: any, o: any, t: any) {\n  assert(true);\n  equal(path.basename('/a/b'), 'b');\n  return sep === '/';\n}", PASSED),
    typescript("generics", "function first<T extends { length: number }>(values: readonly T[]): T | undefined { return values[0]; }\nconst evaluate = <T,>(i: T, o: any, t: any): number => first(['abcde'])!.length / 10;", scored(0.5)),
    typescript("abstract-class", "abstract class Base {\n  declare tag: string;\n  abstract score(): number;\n  static make(): Base { return new Half(); }\n}\nclass Half extends Base {\n  override score(): number { return 0.5; }\n}\nfunction evaluate(i: any, o: any, t: any) { return Base.make().score(); }", scored(0.5)),
    typescript("overloads", "function evaluate(i: any, o: string, t: any): number;\nfunction evaluate(i: any, o: any, t: any): number { return 0.5; }", scored(0.5)),
    typescript("optional-parameter", "function evaluate(inputs: any, outputs: any, trace?: any): number { return 0.5; }", scored(0.5, contract="evaluate")),
    typescript("as-const", "const words = ['a', 'b'] as const;\ntype Word = (typeof words)[number];\nexport function evaluate(i: any, o: Word, t: any): boolean { return words.includes(o); }", PASSED, outputs="b"),
    typescript("ill-typed", "const n: number = 'half';\nasync function evaluate(i: Missing, o: any, t: any): any { return n as any === 'half'; }", PASSED),
    typescript("untyped-parameters", "function evaluate(inputs, outputs, trace) { return outputs === 'a'; }", PASSED, outputs="a"),
    typescript("export-default", "export default async function (inputs: any, outputs: any, trace: any): Promise<number> { return 0.5; }", scored(0.5)),
    typescript("export-default-object", "export default { score: (i: any, o: any) => 0.5 };", failed("entry_not_found", "the default export is an object without it")),
    typescript("export-default-object-entry", "export default { score: (i: any, o: any, t: any) => 0.5 };", scored(0.5), entry="score"),
    typescript("export-default-of-one", "export default (args: any) => args.a / 2;", failed("entry_ambiguous", "the default export takes one parameter")),
    typescript("factory", "type Evaluate = (i: any, o: any, t: any) => number;\nconst make = (): Evaluate => () => 0.5;\nconst evaluate: Evaluate = make();", scored(0.5), contract="evaluate"),
    typescript("plain-javascript", "const evaluate = (i, o, t) => 0.5;", scored(0.5)),
    typescript("v1", "function evaluate(params: object, inputs: any, output: string, answer: string): number { return output === answer ? 1 : 0; }", scored(1, contract="evaluate-v1"), inputs={"correct_answer": "a"}, outputs="a"),
    typescript("syntax-error", "function evaluate(i: any, o: any, t: any): number {\n  return (1;\n}", failed("syntax_error", line=2)),
    typescript("error-line", "interface A {\n  b: string;\n}\n\nfunction evaluate(i: any, o: any, t: any): number {\n  const a: A = i;\n  throw new RangeError(a.b);\n}", failed("user_exception", "too far", type="RangeError", line=7), inputs={"b": "too far"}),
]  # fmt: skip
