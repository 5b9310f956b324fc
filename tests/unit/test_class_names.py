"""A class name means one thing in the host: no two modules define public classes with the same name."""

import ast
from collections import defaultdict
from pathlib import Path
from typing import Final

import evaluator_host

HOST: Final = Path(evaluator_host.__file__).parent
OTHERS: Final = ("selftest/attacks", "web/ui")  # folders with evaluators, which may use any class names
# NeMo's SDK gives this class its name
GIVEN: Final = {("vendors/nemo/sdk/runs.py", "Evaluator")}


def test_each_class_name_has_one_owner() -> None:
    owners: dict[str, list[str]] = defaultdict(list)
    for path in HOST.rglob("*.py"):
        file = path.relative_to(HOST).as_posix()
        if file.startswith(OTHERS):
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and (file, node.name) not in GIVEN:
                owners[node.name].append(file)
    assert "EvaluationResult" in owners
    assert {name: files for name, files in owners.items() if len(files) > 1} == {}
