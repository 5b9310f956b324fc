"""Answers an editor's questions about Python code, with jedi and pyflakes.

The host loads this file into a sandbox as an evaluator, and calls it for each question (`engine/service/editor.py`).
Files that jedi parses at load can be used for all questions; files parsed for one question are lost with the question's
process.
"""

import ast
import importlib
import re
import sys
import time
import typing
from pathlib import Path

sys.path.append(sys.orig_argv[sys.orig_argv.index("--restricted") + 1])

import jedi
import parso.cache
from pyflakes.checker import Checker

HOME = Path("/tmp/code")  # noqa: S108 - each sandbox has its own /tmp
MOST_NAMES = 1000
MOST_SIGNATURES = 3
MOST_PROBLEMS = 50
DOC_CHARS = 1200
WARM_S = 4.0  # seconds of processor time that warming up may take
TYPICAL = {"numpy": "numpy.array([1.0])", "pandas": "pandas.DataFrame({})", "sklearn": "sklearn.metrics"}
BASIC = ('"a".', "[1].", "{}.")
SOURCES = list(sys.path[:-1])
ENVIRONMENT = jedi.InterpreterEnvironment()


def no_file(*_given, **_named):
    """Do nothing.

    This function replaces jedi's disk cache: if the load left a file behind, each question would need a new load.
    """


parso.cache._save_to_file_system = parso.cache._load_from_file_system = no_file  # noqa: SLF001 - no setting does that


def script(code):
    """Return a jedi script for the code, which can use the sandbox's packages."""
    project = jedi.Project(HOME, sys_path=[str(HOME), *SOURCES], smart_sys_path=False)
    return jedi.Script(code, path=HOME / "evaluator.py", environment=ENVIRONMENT, project=project)


def warm(modules):
    """Make jedi parse the files that most questions need: built-in types, and the modules of the packages."""
    until = time.process_time() + WARM_S
    packages = [f"import {name}\n{text}." for name in modules for text in (name, TYPICAL.get(name)) if text]
    for code in (*BASIC, *packages):
        if time.process_time() < until:
            script(code).complete()


def main(code, what, line, column, given, files):
    """Return the answer to the question `what`: `{"completions" | "text" | "signatures" | "problems": …}`.

    Lines and columns count from 1. `given` has values for the function's parameters, by name; `files` has texts, by
    path.
    """
    if what == "problems":
        return {"problems": problems(code)}
    for path, text in files.items():
        place = HOME / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    importlib.invalidate_caches()  # the folder did not exist when this was loaded
    lines = re.split(r"\r\n|\r|\n", code)
    line = min(line, len(lines))
    column = min(column - 1, len(lines[line - 1]))
    return ANSWERS[what](script(code + calls(code, given)), line, column)


def calls(code, given):
    """Write a call to each function that the host may call; jedi infers parameter types from these calls."""
    named = ", ".join(f"{name}={shortened(value)!r}" for name, value in given.items() if name.isidentifier())
    functions = re.findall(r"^(?:async )?def (evaluate|main)\b", code, re.MULTILINE)
    return "".join(f"\n\n{name}({named})" for name in functions)


def shortened(value, depth=4):
    """Shorten a value, keeping its type: only `depth` levels of lists and dicts are kept."""
    if isinstance(value, str):
        return value[:20]
    if isinstance(value, list):
        return [shortened(one, depth - 1) for one in value[:1]] if depth else []
    if isinstance(value, dict):
        return {key[:100]: shortened(one, depth - 1) for key, one in list(value.items())[:50]} if depth else {}
    return value


def completions(asked, line, column):
    """Return the names that can complete the text at the cursor."""
    found = asked.complete(line, column)[:MOST_NAMES]
    return {"completions": [{"name": one.name_with_symbols, "kind": kind(one._name)} for one in found]}  # noqa: SLF001


def kind(name):
    """Return `function`, `class`, `property`, …; `name` for imported names, whose real kind takes long to find."""
    return "name" if name.api_type == "module" and name.is_import() else name.api_type


def hover(asked, line, column):
    """Return the kind of the name at the cursor, and its documentation."""
    found = next(iter(asked.help(line, column)), None)
    if found is None or found.type in ("keyword", "param"):
        return {"text": None}
    text = found.docstring().strip() or found.description
    return {"text": f"{found.type} {found.full_name or found.name}\n{text}"[:DOC_CHARS]}


def signature(asked, line, column):
    """Return the signatures of the function call around the cursor, and the parameter at the cursor."""
    found = asked.get_signatures(line, column)[:MOST_SIGNATURES]
    return {"signatures": [{"text": one.to_string()[:DOC_CHARS], "parameter": at_cursor(one)} for one in found]}


def at_cursor(found):
    """Return the name of the parameter at the cursor, or None."""
    return None if found.index is None else found.params[found.index].name


ANSWERS = {"completions": completions, "hover": hover, "signature": signature}


def problems(code):
    """Return pyflakes' findings, except about names that the host defines; nothing if the code cannot be parsed."""
    try:
        checker = Checker(ast.parse(code), "evaluator.py")
    except (SyntaxError, ValueError, RecursionError):
        return []
    found = sorted(checker.messages, key=lambda one: (one.lineno, one.col))
    return [
        {"line": one.lineno, "column": one.col + 1, "message": one.message % one.message_args}
        for one in found[:MOST_PROBLEMS]
        if not (type(one).__name__ == "UndefinedName" and is_bound(one.message_args[0]))
    ]


def is_bound(name):
    """Return whether the host may define a name that the code does not import."""
    return name in sys.stdlib_module_names or hasattr(typing, name) or name == "dataclass"
