"""The pages' API types match the OpenAPI document, and `make check` notices if they do not."""

import json
import subprocess
from typing import Any

import pytest

from evaluator_host.web.workbench import DIST
from tests.described import described_app
from tests.probe import NODE

pytestmark = pytest.mark.engine  # these tests need the npm packages of the pages

UI = DIST.parent


@pytest.fixture(scope="module")
def document() -> Any:
    """The output of `.ci/openapi.py`, as in `make check`."""
    return json.loads(json.dumps(described_app().openapi()))


def check(document: Any) -> "subprocess.CompletedProcess[str]":
    """Run the same check as `make check`, on this document."""
    command = [NODE, UI / "api-types.mjs", "--check"]
    return subprocess.run(command, input=json.dumps(document), capture_output=True, text=True)


def test_the_types_are_those_of_the_document_whatever_its_docstrings_and_other_routes_say(document: Any) -> None:
    reworded = json.loads(json.dumps(document))
    reworded["components"]["schemas"]["JobReport"]["description"] = "Other words."
    reworded["paths"] = {path: methods for path, methods in document["paths"].items() if path.startswith("/v1/")}
    result = check(reworded)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.long
def test_a_changed_field_makes_them_stale(document: Any) -> None:
    changed = json.loads(json.dumps(document))
    changed["components"]["schemas"]["JobReport"]["properties"]["owner"] = {"type": "string"}
    result = check(changed)
    assert result.returncode == 1
    assert "make types" in result.stderr
