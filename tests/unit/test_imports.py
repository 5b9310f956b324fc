"""The modules that a source names, and the package of each."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator_host.model.evaluator import Language
from evaluator_host.packages.scripts import module_specifiers
from evaluator_host.packages.suggest import pin_for
from tests.fuzz.bounds import scaled


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('import _ from "a"', ["a"]),
        ("import 'a'; import b from'b'", ["a", "b"]),
        ('import type { T } from "a"; export * from "b"; export { x } from "c"', ["a", "b", "c"]),
        ('import {\n a,\n // from "no"\n b } from\n "a"', ["a"]),
        ('await import("a"); require("b"); require.resolve("c"); import(/* x */ "d")', ["a", "b", "c", "d"]),
        ('import x = require("a")', ["a"]),
        ('// import "no"\n/* from "no" */ import "a"', ["a"]),
        ("const s = 'import \"no\"', t = \"from 'no'\"; import 'a'", ["a"]),
        (
            '`import "no" ${require("a")} from "no" ${ {x: `${require("b")}`} } require("no")`; import "c"',
            ["a", "b", "c"],
        ),
        ('const r = /["\'`]/.test(s); import "a"', ["a"]),
        ('x = a / b; import "a"; y = c / d', ["a"]),
        ('if (/[/"]/.test(s)) {}\nimport "a"', ["a"]),
        ('o.require("no"); o.import("no"); from("no"); o.require.resolve("no"); import.meta["no"]', []),
        ('function require("no") {}', []),
        ('/* unclosed import "no"', []),
        ("import `a`", []),
        ("", []),
    ],
)
def test_specifiers_are_found_where_a_module_is_named_and_nowhere_else(source: str, found: list[str]) -> None:
    specifiers = list(module_specifiers(source))
    assert [one.text for one in specifiers] == found
    assert all(source[one.start : one.end] == one.text for one in specifiers)


@pytest.mark.parametrize("piece", ["(", "`${", "a<", "()", ".b()", "x=>("])
def test_a_program_may_nest_as_deeply_as_it_likes(piece: str) -> None:
    assert module_specifiers("a" + piece * 20_000) == []


@settings(max_examples=scaled(300), deadline=None)
@given(st.lists(st.sampled_from([*"`${}/\"'\\\n(*a ", "import ", "//", "${", "from "]), max_size=40).map("".join))
def test_no_text_stops_the_scanner(source: str) -> None:
    assert all(source[one.start - 1] in "\"'" for one in module_specifiers(source))


@pytest.mark.parametrize(
    ("module", "package"),
    [
        ("cv2", "opencv-python"),
        ("yaml", "pyyaml"),
        ("sklearn.metrics", "scikit-learn"),
        ("PIL.Image", "pillow"),
        ("bs4", "beautifulsoup4"),
        ("dateutil.parser", "python-dateutil"),
        ("google.cloud.storage", "google-cloud-storage"),
        ("google.protobuf", "protobuf"),
        ("rouge_score", "rouge-score"),
        ("numpy", "numpy"),
        ("json", None),
        ("os.path", None),
        ("utils", None),
        ("_private", None),
        ("-r x", None),
        ("", None),
    ],
)
def test_a_python_import_names_its_package(module: str, package: str | None) -> None:
    assert pin_for(module, Language.PYTHON) == package


@pytest.mark.parametrize(
    ("specifier", "package"),
    [
        ("lodash", "lodash"),
        ("lodash/fp", "lodash"),
        ("@scope/name/sub/path.js", "@scope/name"),
        ("JSONStream", "JSONStream"),
        ("fs", None),
        ("fs/promises", None),
        ("node:fs", None),
        ("./own", None),
        ("/own", None),
        ("#own", None),
        ("https://example.org/x.js", None),
        ("@scope", None),
    ],
)
def test_a_javascript_specifier_names_its_package(specifier: str, package: str | None) -> None:
    assert pin_for(specifier, Language.TYPESCRIPT) == package
