"""Python pins: exact or refused by name; one canonical form; and what a file and its imports ask for."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evaluator_host.errors import InvalidPin, InvalidRequest
from evaluator_host.model import Language
from evaluator_host.packages.explain import shorten
from evaluator_host.packages.imports import pin_for
from evaluator_host.packages.index import IndexSettings, npm_workspace, uv_workspace
from evaluator_host.packages.locked import Lock, LockedPackage, Target
from evaluator_host.packages.pins import MAX_PINS, Pin, parse
from evaluator_host.packages.scripts import read_script, require_python
from evaluator_host.packages.specifiers import module_specifiers

PYTHON = Language.PYTHON


def texts(raw: Any) -> list[str]:
    return [pin.text for pin in parse(raw, PYTHON)]


def refused(item: Any) -> tuple[str, str | None]:
    with pytest.raises(InvalidPin) as caught:
        parse(["six==1.16.0", item], PYTHON)
    (problem,) = caught.value.problems
    assert problem.field == "packages[1]"
    return problem.message, problem.hint


@pytest.mark.parametrize(
    ("raw", "canonical"),
    [
        ("numpy==2.1.0", "numpy==2.1.0"),
        ("  NumPy == 2.1 ", "numpy==2.1.0"),
        ("numpy==v2.1.0.0", "numpy==2.1.0"),
        ("Ruamel_Yaml.Clib==0.2.8", "ruamel-yaml-clib==0.2.8"),
        ("Requests[SOCKS, use_chardet]==2.32.3", "requests[socks,use-chardet]==2.32.3"),
        ("pytz==2024.1", "pytz==2024.1"),
        ("pytz==2024.1.0", "pytz==2024.1"),
        ("torch==2.5.0+CPU", "torch==2.5.0+cpu"),
        ("a==1!2.0RC1.post2.dev3", "a==1!2.0.0rc1.post2.dev3"),
        ({"name": "NumPy", "version": "2.1"}, "numpy==2.1.0"),
        ({"name": "requests[socks]", "version": "2.32.3"}, "requests[socks]==2.32.3"),
    ],
)
def test_every_spelling_of_an_exact_pin_has_one_form(raw: Any, canonical: str) -> None:
    assert texts([raw]) == [canonical]


def test_order_case_spelling_and_repetition_do_not_matter() -> None:
    one = parse(["numpy==2.1.0", "Requests[socks]==2.32.3"], PYTHON)
    other = parse(
        ["requests==2.32.3", "NUMPY == 2.1", {"name": "requests[SOCKS]", "version": "2.32.3"}, "numpy==2.1"], PYTHON
    )
    assert one == other


@pytest.mark.parametrize(
    ("item", "what", "hint"),
    [
        ("numpy>=2.1.0", "range", "numpy==2.1.0"),
        ("numpy~=2.1", "range", "numpy==2.1.0"),
        ("numpy>=2,<3", "range", "numpy==2.0.0"),
        ("numpy!=2", "range", None),
        ("numpy==2.*", "range", None),
        ("numpy===2.1.0", "===", "numpy==2.1.0"),
        ("numpy==2.1,==2.2", "range", None),
        ("numpy", "no version", None),
        ("numpy=2.1", "two equals", "numpy==2.1.0"),
        ("numpy latest", "latest", None),
        ("numpy==latest", "latest", None),
        ("numpy@latest", "latest", None),
        ("numpy 2.1", "not a pin", None),
        ("numpy @ https://example.org/numpy.whl", "URL", None),
        ("https://example.org/numpy-2.1.0.tar.gz", "URL", None),
        ("git+https://example.org/a/b@main", "URL", None),
        ("github:a/b", "URL", None),
        ("numpy @ file:///tmp/x", "URL", None),
        ("file:x", "URL", None),
        ("npm:lodash@4.17.21", "URL", None),
        ("./numpy", "path", None),
        ("../numpy==1", "path", None),
        ("/tmp/numpy-2.1.0-py3-none-any.whl", "path", None),
        ("numpy-2.1.0.tar.gz", "path", None),
        ("-r requirements.txt", "option", None),
        ("--index-url=https://example.org", "option", None),
        ("-e .", "option", None),
        ("numpy==2.1 --hash=sha256:00", "not a pin", None),
        ("numpy==2.1; python_version<'4'", "marker", "numpy==2.1.0"),
        ("numpy==2.1;", "marker", "numpy==2.1.0"),
        ("numpy==2.1 # fast", "comment", "numpy==2.1.0"),
        ("numpy==2.1\nevil==1", "line break", None),
        ("numpy==2.1\r--index-url=x", "line break", None),
        ("numpy==2.1\u2028evil==1", "line break", None),
        ("num\u200bpy==2.1", "invisible", None),
        ("numpy\x00==2.1", "invisible", None),
        ("\u0578umpy==2.1", "not a pin", None),
        ("", "empty", None),
        ("   ", "empty", None),
        ("a" * 400 + "==1", "longer", None),
        ("lodash@4.17.21", "npm's spelling", "lodash==4.17.21"),
        ("@scope/name@1.0.0", "npm package", None),
        (3, "text or an object", None),
        (None, "text or an object", None),
        (["numpy==2.1"], "text or an object", None),
        ({"name": "numpy"}, "exactly", None),
        ({"name": "numpy", "version": 2}, "exactly", None),
        ({"name": "numpy", "version": "2.1", "index": "x"}, "exactly", None),
        ({"name": "numpy", "version": ">=2"}, "range", "numpy==2.0.0"),
        ({"name": "-r", "version": "1"}, "option", None),
        ({"name": "numpy", "version": "1.0; x"}, "marker", "numpy==1.0.0"),
        ({"name": "numpy>=1,", "version": "1.0"}, "range", None),
    ],
)
def test_what_is_not_exact_is_refused_by_name(item: Any, what: str, hint: str | None) -> None:
    message, found = refused(item)
    assert what in message
    assert found == hint


def test_every_bad_pin_is_named() -> None:
    with pytest.raises(InvalidPin) as caught:
        parse(["numpy>=2", "six==1.16.0", "-r x"], PYTHON)
    assert [problem.field for problem in caught.value.problems] == ["packages[0]", "packages[2]"]


def test_two_versions_of_one_package_name_both() -> None:
    with pytest.raises(InvalidPin) as caught:
        parse(["numpy==2.1.0", "six==1.16.0", "NumPy==2.0.0"], PYTHON)
    (problem,) = caught.value.problems
    assert problem.field == "packages[2]"
    assert "numpy==2.0.0" in problem.message
    assert "numpy==2.1.0" in problem.message


@pytest.mark.parametrize("raw", ["numpy==2.1.0", {"name": "numpy", "version": "2"}, None, 3])
def test_a_set_that_is_no_list_is_refused(raw: Any) -> None:
    with pytest.raises(InvalidPin):
        parse(raw, PYTHON)


def test_a_set_has_at_most_so_many_pins() -> None:
    assert len(parse([f"p{number}==1.0.0" for number in range(MAX_PINS)], PYTHON)) == MAX_PINS
    with pytest.raises(InvalidPin):
        parse([f"p{number}==1.0.0" for number in range(MAX_PINS + 1)], PYTHON)


PIECES = st.sampled_from(
    [
        "numpy",
        "==",
        "2.1",
        "=",
        "@",
        "[x]",
        ";",
        "#",
        "-",
        "git+",
        "://",
        " ",
        "\n",
        ">=",
        "~",
        ".*",
        "latest",
        "!",
        "\ud800",
        ",",
        "$",
    ]
)
ITEMS = st.one_of(
    st.text(max_size=40),
    st.lists(PIECES, max_size=8).map("".join),
    st.dictionaries(st.sampled_from(["name", "version", "x"]), st.text(max_size=10), max_size=3),
    st.none() | st.integers() | st.binary(max_size=5) | st.lists(st.text(max_size=3), max_size=2),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(ITEMS, max_size=4))
@example(["a[" + "," * 200 + "]==1"])
@example(["a==" + "9" * 280])
@example([{"name": {}, "version": []}])
def test_anything_is_pins_or_refused_and_pins_are_a_fixed_point(raw: list[Any]) -> None:
    try:
        pins = parse(raw, PYTHON)
    except InvalidPin as error:
        problems = error.problems
    else:
        assert parse([pin.text for pin in reversed(pins)], PYTHON) == pins
        for pin in pins:
            assert re.fullmatch(r"[a-z0-9-]+(\[[a-z0-9,-]+\])?==[0-9a-z.!+]+", pin.text)
        return
    assert problems
    for problem in problems:
        assert problem.hint is None or texts([problem.hint]) == [problem.hint]


def test_a_block_in_the_file_pins_its_packages() -> None:
    source = '# /// script\r\n# requires-python = ">=3.11"\r\n# dependencies = [\r\n#   "NumPy==2.1",\r\n# ]\r\n# ///\r\nimport numpy\r\n'
    script = read_script(source, PYTHON)
    assert [pin.text for pin in script.pins] == ["numpy==2.1.0"]
    assert (script.source, script.requires_python) == (source, ">=3.11")


@pytest.mark.parametrize("source", ["", "import numpy\n", "# /// other\n# x = 1\n# ///\n", 'x = "# /// script"\n'])
def test_a_file_without_a_block_pins_nothing(source: str) -> None:
    assert read_script(source, PYTHON).pins == ()


@pytest.mark.parametrize(
    ("block", "what"),
    [
        ("# dependencies = [", "TOML"),
        ('# dependencies = "numpy==2.1"', "list"),
        ("# dependencies = [1]", "list"),
        ('# requires-python = "three"', "requires-python"),
        ("# requires-python = 3", "requires-python"),
        ("# x = 1\n# ///\n\n# /// script\n# y = 1", "two"),
    ],
)
def test_a_bad_block_says_what_is_wrong(block: str, what: str) -> None:
    with pytest.raises(InvalidRequest, match=what):
        read_script(f"# /// script\n{block}\n# ///\n", PYTHON)


@pytest.mark.parametrize(
    ("required", "version", "fits"),
    [
        (">=3.11", "3.11", True),
        (">=3.11.4", "3.11", True),  # whether 3.11 is an older one is not known
        (">=3.11.4", "3.11.2", False),
        ("==3.12.*", "3.11", False),
        ("<3.13", "3.13", False),
        ("~=3.10", "3.13", True),
    ],
)
def test_the_python_that_a_file_requires_is_checked(required: str, version: str, *, fits: bool) -> None:
    if fits:
        require_python(required, version)
        return
    with pytest.raises(InvalidRequest, match=f"requires Python .*{version}"):
        require_python(required, version)


def test_a_range_in_the_block_is_refused_as_anywhere() -> None:
    with pytest.raises(InvalidPin) as caught:
        read_script('# /// script\n# dependencies = ["numpy>=2.1.0"]\n# ///\n', PYTHON)
    assert caught.value.problems[0].hint == "numpy==2.1.0"


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
        ('const s = "unclosed\nimport "a"', ["a"]),
        ('/* unclosed import "no"', []),
        ('`unclosed import "no"', []),
        ("import `a`", []),
        ("", []),
    ],
)
def test_specifiers_are_found_where_a_module_is_named_and_nowhere_else(source: str, found: list[str]) -> None:
    specifiers = list(module_specifiers(source))
    assert [one.text for one in specifiers] == found
    assert all(source[one.start : one.end] == one.text for one in specifiers)


@settings(max_examples=300, deadline=None)
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
    assert pin_for(module, PYTHON) == package


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


def operator_index(directory: Path) -> IndexSettings:
    return IndexSettings(
        cache_dir=directory,
        pip_index_url="https://bob:p%40ss-w0rd@index.example.org/simple",
        npm_registry="https://index.example.org/npm",
        npm_token="npm_t0ken",
        proxy="http://eve:pr0xy-pass@proxy.example.org:3128",
    )


def test_credentials_never_reach_an_argument_a_message_or_a_repr(tmp_path: Path) -> None:
    index = operator_index(tmp_path)
    said = "Failed: https://bob:p%40ss-w0rd@index.example.org/simple p@ss-w0rd npm_t0ken http://eve:pr0xy-pass@proxy"
    with uv_workspace(index) as uv, npm_workspace(index) as npm:
        shown = shorten(said, index) + repr(index) + repr(uv) + repr(npm) + uv.environment["UV_DEFAULT_INDEX"]
        rc_file = Path(npm.environment["npm_config_userconfig"])
        assert uv.environment["UV_INDEX_OPERATOR_PASSWORD"] == "p@ss-w0rd"
        assert '//index.example.org/npm/:_authToken="npm_t0ken"' in rc_file.read_text()
        assert rc_file.stat().st_mode & 0o077 == 0
    assert not rc_file.exists()
    for secret in ("p%40ss-w0rd", "p@ss-w0rd", "npm_t0ken", "pr0xy-pass"):
        assert secret not in shown


def test_a_builder_gets_addresses_without_credentials(tmp_path: Path) -> None:
    public = operator_index(tmp_path).for_builder()
    assert public.secrets == ()
    assert public.pip_index_url == "https://index.example.org/simple"
    assert public.cache_dir != tmp_path


def test_words_of_a_resolver_are_shortened(tmp_path: Path) -> None:
    said = "\x1b[31merror\x1b[0m: /home/ann/.cache/uv/x.lock broke\n\n" + "line\n" * 50
    lines = shorten(said, IndexSettings(cache_dir=tmp_path)).splitlines()
    assert lines[0] == "error: … broke"
    assert len(lines) == 15


def a_lock() -> Lock:
    pins = (Pin("numpy", "2.1.0"), Pin("requests", "2.32.3", ("socks",)))
    packages = (LockedPackage("numpy", "2.1.0", requested=True, hashes=("sha256:00",), dependencies=("x",)),)
    return Lock(PYTHON, Target("3.13"), pins, packages, "numpy==2.1.0 \\\n    --hash=sha256:00\n", notes=("note",))


def test_a_stored_lock_reads_back_the_same() -> None:
    assert Lock.from_json(a_lock().to_json()) == a_lock()


@pytest.mark.parametrize("change", [("sha256:00", "sha256:11"), ("3.13", "3.12"), ("x86_64", "aarch64"), ("{", "[")])
def test_a_changed_lock_is_refused(change: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match=r"lock|Expecting"):
        Lock.from_json(a_lock().to_json().replace(*change))
