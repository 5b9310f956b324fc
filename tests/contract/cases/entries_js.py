"""Cases about ways to write the evaluator's function in JavaScript, and about evaluators that cannot be called."""

from evaluator_host.types.evaluator import Contract
from tests.contract.cases.case import failed, javascript, scored

HIT = {"inputs": {"correct_answer": "Paris"}, "outputs": "Paris"}
BODY = "return outputs === inputs.correct_answer ? 1 : 0;"

CASES = [
    javascript("function", f"function evaluate(inputs, outputs, trace) {{ {BODY} }}", scored(1, contract="evaluate"), **HIT),
    javascript("async", f"async function evaluate(inputs, outputs, trace) {{ {BODY} }}", scored(1, contract="evaluate"), **HIT),
    javascript("arrow", f"const evaluate = (inputs, outputs, trace) => {{ {BODY} }};", scored(1, contract="evaluate"), **HIT),
    javascript("async-arrow", "let evaluate = async (i, o, t) => o.length / 10", scored(0.5), **HIT),
    javascript("function-expression", f"var evaluate = function (inputs, outputs, trace) {{ {BODY} }}", scored(1), **HIT),
    javascript(
        "factory",
        "const make = (limit) => (inputs, outputs, trace) => outputs.length <= limit;\nconst evaluate = make(5);",
        scored(1.0, passed=True),
        **HIT,
    ),
    javascript("export-function", f"export function evaluate(inputs, outputs, trace) {{ {BODY} }}", scored(1), **HIT),
    javascript("export-const", "export const evaluate = (i, o, t) => 0.5;", scored(0.5)),
    javascript("export-default-function", f"export default function evaluate(inputs, outputs, trace) {{ {BODY} }}", scored(1), **HIT),
    javascript("export-default-arrow", "export default (inputs, outputs, trace) => 0.5;", scored(0.5, contract="evaluate")),
    javascript("export-list", "const score = (i, o, t) => 0.5;\nexport { score as evaluate };", scored(0.5)),
    javascript("module-exports", f"module.exports = function (inputs, outputs, trace) {{ {BODY} }};", scored(1), **HIT),
    javascript("module-exports-object", "module.exports = { evaluate: (i, o, t) => 0.5 };", scored(0.5)),
    javascript("exports", "exports.evaluate = (i, o, t) => 0.5;", scored(0.5)),
    javascript(
        "bound-method",
        """
        class Matcher {
          constructor(column) { this.column = column; }
          score(inputs, outputs, trace) { return outputs === inputs[this.column]; }
        }
        const matcher = new Matcher("correct_answer");
        const evaluate = matcher.score.bind(matcher);
        """,
        scored(1.0, passed=True),
        **HIT,
    ),
    javascript("default-parameter", "function evaluate(inputs, outputs, trace = null) { return 1; }", scored(1, contract="evaluate")),
    javascript("rest-parameter", "function evaluate(...args) { return 1; }", failed("entry_ambiguous", "evaluate-v1")),
    javascript("rest-parameter-declared", "function evaluate(...args) { return args.length / 10; }", scored(0.3), contract=Contract.EVALUATE),
    javascript("destructured", "function evaluate({ correct_answer: want }, outputs, trace) { return outputs === want; }", scored(1.0, passed=True), **HIT),
    javascript("last-definition-wins", "function evaluate(i, o, t) { return 0.1; }\nfunction evaluate(i, o, t) { return 0.9; }", scored(0.9)),
    javascript(
        "names-like-ours",
        "const result = 1, params = 2, inputs = 3, outputs = 4, trace = 5;\n"
        "function evaluate(i, o, t) { return (result + params + inputs + outputs + trace) / 30; }",
        scored(0.5),
    ),
    javascript("promise", "function evaluate(i, o, t) { return Promise.resolve({ score: 0.5 }); }", scored(0.5)),
    javascript("timer", "const evaluate = (i, o, t) => new Promise((done) => setTimeout(() => done(0.5), 5));", scored(0.5)),
    javascript("require-builtin", 'const path = require("node:path");\nconst evaluate = (i, o, t) => path.basename("/a/b") === "b";', scored(1.0, passed=True)),
    javascript("import-builtin", 'import { createHash } from "node:crypto";\nexport const evaluate = (i, o, t) => createHash("md5").update("").digest("hex").length / 64;', scored(0.5)),
    javascript("printed-score-is-a-log", "function evaluate(i, o, t) { console.log('{\"result\": 0.99}'); return 0.5; }", scored(0.5, stdout='{"result": 0.99}\n')),
    javascript("no-trace-is-null", "const evaluate = (i, o, t) => t === null && o === null;", scored(1.0, passed=True)),
    javascript("named-entry", "const first = (i, o, t) => 0.1;\nconst second = (i, o, t) => 0.2;", scored(0.2), contract=Contract.EVALUATE, entry="second"),
    javascript("four-parameters", "function evaluate(params, inputs, output, answer) { return output === answer; }", scored(1.0, passed=True, contract="evaluate-v1"), **HIT),
    javascript("no-entry", "function score(i, o, t) { return 1; }", failed("entry_not_found", "evaluate")),
    javascript("entry-is-no-function", "const evaluate = 5;", failed("entry_not_found")),
    javascript("syntax-error", "function evaluate(i, o, t) {\n  return (1;\n}", failed("syntax_error", line=2)),
    javascript("load-error", "const x = 1;\nx.y.z;\n", failed("load_error", type="TypeError", line=2)),
    javascript("user-exception", "function evaluate(i, o, t) {\n  return i.missing.length;\n}", failed("user_exception", "undefined", type="TypeError", line=2)),
    javascript("rejected-promise", "async function evaluate(i, o, t) {\n  throw new RangeError('too far');\n}", failed("user_exception", "too far", type="RangeError", line=2)),
    javascript("thrown-text", "function evaluate(i, o, t) {\n  throw 'just text';\n}", failed("user_exception", "just text")),
]  # fmt: skip
