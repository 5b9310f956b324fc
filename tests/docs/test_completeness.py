"""The documentation has every setting, route, error, command and option under its real name."""

import ast
import json
import re
import tomllib
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.client import HostUnreachable
from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.contracts.table import all_dialects
from evaluator_host.platform.evaluators.bodies import EvaluatorIn, LimitsIn, RowIn, SettingsIn
from evaluator_host.selftest.catalogue import load_attacks
from evaluator_host.types.errors import HostError
from evaluator_host.types.outcome import ErrorCode
from evaluator_host.types.plugin_folders import OWN_CONTRACTS
from evaluator_host.types.warnings import WARNINGS
from tests.described import described_app
from tests.docs import coming_from, commands, routes
from tests.docs.blocks import DOCUMENTS, ROOT, read

CLI = read("docs/cli.md")
API = read("docs/api.md")
OF_DIALECTS = [(dialect, code) for dialect in all_dialects() for code in dialect.warnings]
MODULE_DOCUMENTS = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), ROOT / "runtimes" / "PROTOCOL.md"])
MODULE_ROOTS = (ROOT, ROOT / "evaluator_host", ROOT / "runtimes")
MODULE_PATH = r"^[\w.-]+(?:/[\w.-]+)*/[\w.-]+\.(?:py|mjs|cjs|json)$"
NOT_OURS = ("custom/",)  # a folder in the projects of UiPath's users, not in this repository
PICTURES = ("workbench", "comparison")  # pictures that tests/pictures.py takes
THEMES = ("light", "dark")


def openapi() -> dict[str, Any]:
    return described_app().openapi()


def code_spans(document: Path) -> list[str]:
    """Return the strings in single backticks that are outside fenced blocks."""
    text = re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    return [span for span in re.findall(r"`([^`\n]+)`", text) if not span.startswith(NOT_OURS)]


def error_classes() -> list[type[HostError]]:
    found, left = [HostUnreachable], [HostError]
    while left:
        kind = left.pop()
        found.append(kind)
        left.extend(kind.__subclasses__())
    return found


def test_settings_md_has_every_setting_and_no_other() -> None:
    documented = re.findall(r"^- `EVALUATOR_HOST_(\w+)`", read("docs/settings.md"), re.MULTILINE)
    assert documented == [field.upper() for field in Settings.model_fields]


def test_settings_md_says_the_default_and_what_a_setting_is() -> None:
    lines = read("docs/settings.md").splitlines()
    for field, info in Settings.model_fields.items():
        start = f"- `EVALUATOR_HOST_{field.upper()}`"
        (row,) = [line for line in lines if line.startswith((f"{start} ", f"{start}:"))]
        assert info.description, field
        assert info.description in row
        if info.default_factory is None and info.default not in (None, (), ""):
            default = getattr(info.default, "value", info.default)
            assert row.startswith(f"{start} (`{json.dumps(default) if isinstance(default, tuple) else default}`): ")


@pytest.mark.slow
def test_api_md_has_every_route_of_the_host_and_no_other() -> None:
    page = routes.PAGE.read_text()
    assert page == routes.written(page), "run python -m tests.docs.routes, which writes the list"


def test_api_md_has_every_error_of_a_row() -> None:
    assert [code for code in ErrorCode if not re.search(rf"^- `{code}`: ", API, re.MULTILINE)] == []


def test_api_md_has_every_error_of_the_host_with_its_status() -> None:
    for kind in error_classes():
        if kind is HostUnreachable:  # only the client raises this error, so it has no status
            assert f"`{kind.code}`" in API
            continue
        rows = [line for line in API.splitlines() if f"`{kind.code}`" in line and line.startswith(f"- {kind.status} ")]
        assert len(rows) == 1, kind


def test_api_md_says_what_each_warning_means_and_whether_the_score_is_doubtful() -> None:
    doubtful, _, others = API.partition("\nThese make the score doubtful:\n")[2].partition(
        "\nThese do not make the score doubtful:\n"
    )
    for code, kind in WARNINGS.items():
        assert f"- `{code}`: {kind.meaning}" in (doubtful if kind.doubtful else others).splitlines()


def test_the_page_of_a_dialect_says_what_its_own_warnings_mean() -> None:
    for dialect, code in OF_DIALECTS:
        kind = dialect.warnings[code]
        assert f"| `{code}` | {kind.meaning} |" in read(f"docs/dialects/{dialect.contract}.md").splitlines()
        assert code not in WARNINGS
        assert (kind.doubtful, kind.mend) == (False, None), (
            f"{code}: a dialect's own warning must not make scores doubtful or have a remedy, because tallies do not "
            "know it"
        )


def test_each_warning_that_is_made_is_in_a_catalogue_and_the_reverse() -> None:
    assert _codes_made() == {*WARNINGS, *(code for _, code in OF_DIALECTS)}


def _codes_made() -> set[str]:
    """Return the codes of warnings in the source: those in `Note(code, …)`, and those in notes that runners send."""
    made = set(re.findall(r'\("(\w+_at_load)"', read("runtimes/python/evaluator_runner/loading.py")))
    for folder in (ROOT / "evaluator_host", ROOT / "runtimes" / "python"):
        for file in folder.rglob("*.py"):
            made |= _codes_in(file.read_text())
    for file in (ROOT / "runtimes" / "javascript").rglob("*.*js"):
        found = re.findall(r"\{ code: '(\w+)', message\b|\bnote\(state, '(\w+)'", file.read_text())
        # codes of errors look the same in the source, but are not codes of warnings
        made |= {one or other for one, other in found} - {*ErrorCode}
    return made


def _codes_in(program: str) -> set[str]:
    if "Note(" not in program and "note" not in program:
        return set()
    tree = ast.parse(program)
    names = {
        node.targets[0].id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    names |= {
        node.target.id: node.value
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="Note"), args=[code, *_]):
                code = names.get(code.id, code) if isinstance(code, ast.Name) else code
            case ast.Call(func=ast.Attribute(attr="with_note"), args=[_, code, _]):
                pass
            case ast.Dict(keys=[ast.Constant(value="code"), ast.Constant(value="message")], values=[code, _]):
                pass
            case _:
                continue
        if isinstance(code, ast.Constant) and isinstance(code.value, str):
            found.add(code.value)
    return found


def test_every_status_that_openapi_names_is_documented() -> None:
    named = {
        status
        for methods in openapi()["paths"].values()
        for operation in methods.values()
        for status in operation["responses"]
    }
    for status in named - {"200"}:
        assert re.search(rf"^- {status} `", API, re.MULTILINE), status


def test_api_md_has_every_field_of_a_request() -> None:
    fields = [name for name in EvaluatorIn.model_fields if name not in ("limits", "settings")]
    fields += [f"limits.{name}" for name in LimitsIn.model_fields]
    fields += [f"settings.{name}" for name in SettingsIn.model_fields]
    fields += list(RowIn.model_fields)
    missing = [field for field in fields if not re.search(rf"^- `{re.escape(field)}`[ :]", API, re.MULTILINE)]
    assert not missing


def test_contracts_md_has_every_contract_of_the_host() -> None:
    page = read("docs/contracts.md")
    assert [one for one in OWN_CONTRACTS if not re.search(rf"^\| `{one}` \|", page, re.MULTILINE)] == []


def test_coming_from_md_has_the_table_of_all_platforms() -> None:
    page = coming_from.PAGE.read_text()
    assert page == coming_from.written(page), "run python -m tests.docs.coming_from, which writes the table"


@pytest.mark.slow
def test_cli_md_has_every_command() -> None:
    page = commands.PAGE.read_text()
    assert page == commands.written(page), "run python -m tests.docs.commands, which writes the sections"


def test_help_shows_the_form_of_an_option_that_may_be_repeated() -> None:
    for title, command in commands.leaf_commands().items():
        shown = command.get_help(command.make_context(title, [], resilient_parsing=True))
        assert not re.findall(r"^ +-.*<list\[.*", shown, re.MULTILINE), title


def test_cli_md_has_no_option_that_does_not_exist() -> None:
    real = {"--help", "--debug", "--install-completion", "--show-completion"}
    for command in commands.leaf_commands().values():
        real |= {option for param in command.params for option in (*param.opts, *param.secondary_opts)}
    assert set(re.findall(r"`(--[a-z-]+)", CLI)) <= real


def test_every_link_to_a_file_leads_to_one() -> None:
    for document in DOCUMENTS:
        targets = re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text())
        assert [target for target in targets if not (document.parent / target).exists()] == [], document


def test_every_link_to_a_heading_leads_to_one() -> None:
    for document in DOCUMENTS:
        links = re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", document.read_text())
        lost = [one for one in links if one[1] not in headings(document.parent / one[0] if one[0] else document)]
        assert lost == [], document


def test_every_heading_that_a_page_or_a_description_links_to_exists() -> None:
    sources = [
        *(ROOT / "evaluator_host").rglob("*.py"),
        *(ROOT / "evaluator_host" / "web" / "ui" / "src").rglob("*.ts*"),
    ]
    linking = 0
    for file in sources:
        links = re.findall(r"(?:/help/|docs/)([\w/-]+)(?:\.md)?#([\w-]+)", file.read_text())
        assert [one for one in links if one[1] not in headings(ROOT / "docs" / f"{one[0]}.md")] == [], file
        linking += bool(links)
    assert linking


def test_every_section_of_the_docs_that_a_test_names_exists() -> None:
    quoted = re.compile(r'"([\w/-]+\.md)#([\w-]+)"')
    named = {one for file in (ROOT / "tests").rglob("*.py") for one in quoted.findall(file.read_text())}
    assert len(named) > 10
    assert [one for one in sorted(named) if one[1] not in headings(ROOT / "docs" / one[0])] == []


@cache
def headings(document: Path) -> set[str]:
    """Return the anchors of a document's headings, as GitHub and the pages make them."""
    text = re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    titles = [re.sub(r"[`*]|\]\([^)]*\)|\[", "", title) for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE)]
    return {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles}


def test_the_table_of_contents_has_every_document_once() -> None:
    named = re.findall(r"\]\(([\w/-]+\.md)\)", read("docs/README.md"))
    documents = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")} - {"README.md"}
    of_docs = [one for one in named if one in documents]
    assert sorted(of_docs) == sorted(documents)


def test_the_readme_is_short_and_shows_its_pictures_in_both_themes() -> None:
    text = read("README.md")
    assert len(text.splitlines()) <= 120
    for picture, theme in product(PICTURES, THEMES):
        file = f"docs/pictures/{picture}-{theme}.png"
        assert file in text
        assert (ROOT / file).read_bytes().startswith(b"\x89PNG")
        assert (ROOT / file).stat().st_size < 200_000


def test_every_module_that_a_document_names_exists() -> None:
    for document in MODULE_DOCUMENTS:
        named = {path for span in code_spans(document) for path in re.findall(MODULE_PATH, span)}
        lost = [path for path in sorted(named) if not any((root / path).exists() for root in MODULE_ROOTS)]
        assert lost == [], document


def test_architecture_md_draws_the_layers_that_the_linter_holds() -> None:
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    # in the linter's configuration, a layer that may be missing is in brackets
    layers = [re.sub(r"[()]", "", layer) for layer in linter["contracts"][0]["layers"]]
    held = [sorted(layer.split(" | ")) for layer in layers]
    drawing = read("docs/architecture.md").split("```text\n")[1].split("```")[0].rstrip()
    packages = [line[:35].split() for line in drawing.splitlines()]
    assert [sorted(layer) for layer in packages] == held
    assert len(held) <= 12


def test_the_list_of_public_flaws_is_that_of_the_attacks() -> None:
    section = read("docs/security.md").partition("## Public flaws")[2].partition("\n## ")[0]
    tried, left = section.split("These do not apply")
    rows = re.findall(r"^- `(\S+)`: .* \(([\d, -]+)\)$", tried, re.MULTILINE)
    told = {name: tuple(f"CVE-{number}" for number in numbers.split(", ")) for name, numbers in rows}
    assert told == {attack.name: attack.like for attack in load_attacks() if attack.like}
    numbers = [*re.findall(r"\b20\d\d-\d{4,5}\b", tried), *re.findall(r"\b20\d\d-\d{4,5}\b", left)]
    assert len(numbers) == len(set(numbers)) > 70
