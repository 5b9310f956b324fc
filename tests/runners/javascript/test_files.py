"""Files that are sent with an evaluator are bundled with its code, keep their own paths, and are named in errors."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runners.conftest import RunnerProcess, body

CALLED = "export function evaluate(inputs, outputs, trace) { return score() }\n"


@pytest.fixture(name="evaluator")
def evaluator_fixture(start: Callable[..., RunnerProcess]) -> Callable[..., tuple[RunnerProcess, Any]]:
    def load(code: str, files: dict[str, str], path: str | None = None, *, arguments: Any = (), **header: Any) -> Any:
        runner = start(*arguments)
        language = header.pop("language", "typescript")
        return runner, runner.load(code, language=language, body={"files": files, "path": path}, **header)

    return load


def test_modules_are_imported_with_their_types_and_data(evaluator: Callable[..., Any]) -> None:
    files = {
        "lib/text.ts": "import type { Row } from './types';\nimport words from '../data/words.json';\n"
        "export const score = (row?: Row): number => words.length + (row?.x ?? 0);",
        "lib/types.ts": "export interface Row { x: number }",
        "data/words.json": '["a", "b"]',
        "prompt.txt": "said",
    }
    code = (
        "import { score } from './lib/text.js';\nimport type { Gone } from './lib/types';\nimport prompt from './prompt.txt';\n"
        "export const evaluate = (inputs: any, outputs: any, trace: any) => [score({ x: 1 }), prompt];\n"
    )
    runner, loaded = evaluator(code, files)
    assert loaded.type == "loaded", loaded
    assert body(runner.call(None, None, None))["value"] == [3, "said"]


def test_scorers_in_files_need_no_package_of_their_platform(evaluator: Callable[..., Any]) -> None:
    files = {
        "src/scorers.ts": "import { createScorer } from 'evalite';\nexport const half = createScorer({ name: 'half', scorer: () => 0.5 });",
        "tsconfig.json": '{"compilerOptions": {"paths": {"#mine/*": ["./src/*"]}}}',
    }
    code = "import { half } from '#mine/scorers';\nexport const evaluate = (inputs, outputs, trace) => half({ output: outputs });"
    runner, loaded = evaluator(code, files)
    assert loaded.type == "loaded", loaded
    assert body(runner.call(None, None, None))["value"] == {"name": "half", "score": 0.5}


@pytest.mark.long
@pytest.mark.slow
def test_code_that_lies_deeper_imports_what_is_above(evaluator: Callable[..., Any]) -> None:
    files = {"lib/a.mjs": "export const a = 1", "evals/b.cjs": "exports.b = 2; exports.at = __filename"}
    code = (
        "const { a } = require('../lib/a.mjs'); const { b, at } = require('./b.cjs');\n"
        "exports.evaluate = (inputs, outputs, trace) => [a, b, at.endsWith('/evals/b.cjs'), __filename.endsWith('/evals/s.js')]\n"
    )
    runner, loaded = evaluator(code, files, "evals/s.js", language="javascript")
    assert loaded.type == "loaded", loaded
    assert body(runner.call(None, None, None))["value"] == [1, 2, True, True]
    again, loaded = evaluator(code, files, "evals/s.js", language="javascript", bundle=body(loaded)["bundle"])
    assert body(again.call(None, None, None))["value"] == [1, 2, True, True]


def test_an_error_names_the_file_and_the_line_is_the_evaluators(evaluator: Callable[..., Any]) -> None:
    files = {"lib/deep.ts": "\nexport function score(): number {\n  throw new RangeError('no') }"}
    runner, _ = evaluator(f"import {{ score }} from './lib/deep';\n{CALLED}", files, "evals.ts")
    error = body(runner.call(None, None, None))["error"]
    assert (error["type"], error["line"]) == ("RangeError", 2)
    assert "at score (lib/deep.ts:3:9)\n    at evaluate (evals.ts:2:" in error["traceback"]


def test_packages_are_found_beside_the_files(evaluator: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "node_modules" / "pack").mkdir(parents=True)
    (tmp_path / "node_modules" / "pack" / "index.js").write_text("exports.seven = 7; exports.at = __filename")
    runner, loaded = evaluator(
        f"import {{ score }} from './lib/deep';\n{CALLED}",
        {"lib/deep.ts": "import { seven, at } from 'pack';\nexport const score = () => [seven, at];"},
        arguments=("--packages", str(tmp_path)),
    )
    assert loaded.type == "loaded", loaded
    assert body(runner.call(None, None, None))["value"] == [7, f"{tmp_path}/node_modules/pack/index.js"]


@pytest.mark.parametrize(
    "head", ["function same(output: any, target: any) {", "const same = async ({ output, target }: any) => {"]
)
def test_parameters_have_the_names_that_the_user_wrote(evaluator: Callable[..., Any], head: str) -> None:
    code = (
        f"import {{ output as other, target as wanted }} from './lib';\nexport {head}\n"
        "  return output === target ? 1 : other + wanted;\n}\n"
    )
    _, loaded = evaluator(code, {"lib.ts": "export const output = 2, target = 3;"})
    assert loaded.type == "loaded", loaded
    assert (loaded.header["contract"], loaded.header["parameters"]) == ("function", ["output", "target"])


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("code", "rows"),
    [
        ("import { far } from './gone.js';\n", {"near": 1, "far": None}),
        ("import * as gone from '@/lib/gone';\nconst far = (one) => gone.deep.far(one);\n", {"near": 1, "far": None}),
        ("const { far } = require('./gone');\n", {"near": None, "far": None}),
        ("import { far } from './gone';\nconst made = far();\n", {"near": None}),
        ("import { far } from './gone';\nexport const tables = [far];\n", {"near": None}),
        ("import './gone';\n", {"near": None}),
    ],
)
def test_a_file_of_the_author_stops_only_what_comes_to_it(
    start: Callable[..., RunnerProcess], code: str, rows: dict[str, int | None]
) -> None:
    code += "export function evaluate(inputs, outputs, trace) { return outputs === 'near' ? 1 : far('with') }\n"
    for outputs, value in rows.items():
        runner = start()
        loaded = runner.load(code, language="typescript", body={"known": {"zod": "zod"}})
        if loaded.type == "load_failed":
            assert value is None
            assert "gone" in body(loaded)["error"]["message"]
            continue
        answer = runner.call({}, outputs, None)
        if value is None:
            assert answer.type == "failed"
            assert body(answer)["error"]["message"].startswith("Cannot find module '")
        else:
            assert body(answer)["value"] == value


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "caught",
    [
        "try { score = far(outputs) } catch { score = 0 }",
        "score = await Promise.resolve().then(() => far(1)).catch(() => 0)",
    ],
)
def test_a_caught_use_of_a_file_of_the_author_is_reported(start: Callable[..., RunnerProcess], caught: str) -> None:
    row = f"export async function evaluate(inputs, outputs, trace) {{\n  let score = 1;\n  if (outputs) {caught};\n  return score\n}}\n"
    runner = start()
    assert runner.load(f"import {{ far }} from '@/lib/gone';\n{row}", language="typescript").type == "loaded"
    told = [body(runner.call({}, outputs, None)) for outputs in ("", "x")]
    assert [one["value"] for one in told] == [1, 0]
    assert [one.get("missing_imports") for one in told] == [None, [{"module": "@/lib/gone", "line": 1}]]


def test_one_of_several_that_needs_an_absent_package_is_left_out(start: Callable[..., RunnerProcess]) -> None:
    code = (
        "import { z } from 'zod';\nconst Row = z.object({});\n"
        "export const a = (output, expected) => 1;\nexport const b = (output, expected) => (Row ? 1 : 0);\n"
    )
    more: dict[str, Any] = {"body": {"known": {"zod": "zod"}}}
    for _ in range(2):  # in the second round, the sandbox gets the bundle that was made in the first round
        loaded = start().load(code, language="typescript", contract="auto", **more)
        assert loaded.type == "loaded", loaded
        assert loaded.header["parameters"] == ["a(output, expected)"]
        told = [one["message"] for one in loaded.header["notes"] if one["code"] == "entry_left_out"]
        assert told == ["b is not called: Cannot find module 'zod'"]
        more["bundle"] = body(loaded)["bundle"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("files", "code", "message", "line"),
    [
        ({"a.ts": ""}, "import './b';", "Cannot find module './b'", 1),
        ({"a.ts": "import './gone'"}, "\nimport './a';", "Cannot find module './gone', imported by a.ts", None),
        ({"a.ts": "let x = ;"}, "import './a';", 'Unexpected ";" (a.ts:1)', None),
        ({"a.ts": "export const z = 1"}, "import { y } from './a';\nlet x = ;", 'Unexpected ";"', 2),
    ],
)
def test_a_failed_build_names_the_file(
    evaluator: Callable[..., Any], files: dict[str, str], code: str, message: str, line: int | None
) -> None:
    _, failed = evaluator(f"{code}\nexport function evaluate(a, b, c) {{ return 1 }}", files)
    assert failed.type == "load_failed", failed
    error = body(failed)["error"]
    assert (error["message"], error["line"]) == (message, line)
    imported = re.search(r"'(.*)'(?:, imported by (.*))?$", message)
    found = [(one["module"], one["line"], one.get("file")) for one in body(failed)["missing_imports"]]
    assert found == ([] if imported is None else [(imported[1], 1, imported[2])])
