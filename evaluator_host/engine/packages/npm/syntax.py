"""Parses npm pins with npm's own libraries."""

import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, cast

from evaluator_host.engine.packages.lock import Pin, Refusal
from evaluator_host.engine.packages.tools import installed_tools
from evaluator_host.engine.system.processes import PLAIN_PATH
from evaluator_host.types.errors import MachineExhausted, Misconfigured
from evaluator_host.types.evaluator import Language

_PIP_PIN: Final = re.compile(r"(?P<name>@?[\w./-]+)\s*+(?:\[[^\]]*\]\s*+)?={1,3}\s*(?P<version>[v\d][\w.+-]*)")
_PIP_RANGE: Final = re.compile(r"@?[\w./-]+\s*+(?:\[[^\]]*\]\s*+)?(?:[<>]=?|[!~=]=|=)")
_SPACED: Final = re.compile(r"(?P<name>@?[^@\s]+)\s*@\s*(?P<version>[^@\s]+)")
_CHECK: Final = Path(__file__).with_name("check.cjs")
# longest time for a check, in seconds; it takes 60 ms, but on a loaded machine valid pins must not become errors
_CHECK_TIMEOUT_S: Final = 20.0
_MESSAGES: Final = {
    "git": "a git repository is not allowed; pin a version from the registry",
    "remote": "a URL is not allowed; pin a version from the registry",
    "file": "a path or file is not allowed; pin each package that the code imports with its version: zod@4.1.12",
    "directory": "a path is not allowed; pin each package that the code imports with its version: zod@4.1.12",
    "alias": "an alias is not allowed; pin the package under its own name",
}


def read(texts: Sequence[str]) -> list[Pin | Refusal]:
    """Return the exact pin in each string, or the reason why the string is not a pin."""
    asked = [(text, _foreign(text)) for text in texts]
    answers = iter(_judge(tuple(_spec(text) for text, refusal in asked if refusal is None)))
    found = [refusal or _decide(text, next(answers)) for text, refusal in asked]
    return _with_valid_hints(found)


def wanted(texts: Sequence[str]) -> list[tuple[str, str] | None]:
    """Return the name and range (or tag) in each refused string, for a search; None for a string without them."""
    specs = ["" if "#" in text or text.startswith("-") else _meant(text) for text in texts]
    answers = iter(_judge(tuple(filter(None, specs))))
    return [_asked(next(answers)) if spec else None for spec in specs]


def _meant(text: str) -> str:
    pip = re.fullmatch(r"(?P<name>@?[\w./-]+?)\s*(?P<range>(?:[=<>!~^]+\s*[\w.*]+[\s,]*)*)", text)
    return f"{pip['name']}@{_as_npm_range(pip['range'])}" if pip and pip["range"] else _spec(text)


def _asked(answer: dict[str, Any]) -> tuple[str, str] | None:
    if answer["type"] not in {"version", "range", "tag"}:
        return None
    return str(answer["name"]), "latest" if answer["wanted"] in {"*", ""} else str(answer["wanted"])


def _as_npm_range(pip_range: str) -> str:
    return pip_range.replace("~=", "~").replace("===", "=").replace("==", "=").replace(",", " ").strip()


def _spec(text: str) -> str:
    spaced = _SPACED.fullmatch(text)
    return f"{spaced['name']}@{spaced['version']}" if spaced else text


def _foreign(text: str) -> Refusal | None:
    if text.startswith("-"):
        return Refusal("an option of npm is not a package")
    if "#" in text:
        return Refusal("comments and commits are not allowed")
    if pip := _PIP_PIN.fullmatch(text):
        hint = f"{pip['name']}@{pip['version'].removeprefix('v')}"
        return Refusal("this is pip's syntax; a JavaScript evaluator pins packages with @", hint)
    if _PIP_RANGE.match(text):
        return Refusal("this is a version range in pip's syntax; a JavaScript evaluator pins one version with @")
    return None


def _decide(text: str, answer: dict[str, Any]) -> Pin | Refusal:
    match answer["type"]:
        case "version":
            return Pin(str(answer["name"]), str(answer["version"]), language=Language.JAVASCRIPT)
        case "range":
            return _range(text, answer)
        case "tag":
            return _tag(str(answer["wanted"]))
        case "invalid":
            return Refusal(f"is not a pin; write name@1.2.3 ({answer['reason']})")
        case kind:
            return Refusal(_MESSAGES.get(str(kind), "is not a package of the registry; write name@1.2.3"))


def _tag(tag: str) -> Refusal:
    if tag[:1].isdigit():
        return Refusal(f"`{tag[:40]}` is not a semantic version; write name@1.2.3")
    return Refusal(f"`{tag[:40]}` is a tag, not a version, and can mean another version tomorrow; write name@1.2.3")


def _range(text: str, answer: dict[str, Any]) -> Refusal:
    if answer["wanted"] == "*" and "@" not in text[1:]:
        return Refusal("has no version; write name@1.2.3")
    floor = answer["floor"]
    named = floor is not None and str(floor) in text
    return Refusal("is a range; a pin must name one version", f"{answer['name']}@{floor}" if named else None)


def _with_valid_hints(found: list[Pin | Refusal]) -> list[Pin | Refusal]:
    hints = tuple(item.hint for item in found if isinstance(item, Refusal) and item.hint)
    good = {
        hint: f"{answer['name']}@{answer['version']}"
        for hint, answer in zip(hints, _judge(hints), strict=True)
        if answer["type"] == "version"
    }
    return [Refusal(item.message, good.get(item.hint or "")) if isinstance(item, Refusal) else item for item in found]


def _judge(specs: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return how npm's own libraries read each string: `{"type", "name", "version", "wanted", "floor"}` or a reason.

    Raises:
      MachineExhausted: this machine has too little memory, too few processes or the like.
      Misconfigured: node or npm's libraries cannot be run.
    """
    if not specs:
        return []
    tools = installed_tools()
    try:
        answer = subprocess.run(  # noqa: S603 our own node and script; the texts go in on stdin, never on argv
            [str(tools.node), str(_CHECK)],
            input=json.dumps({"npm": str(tools.npm), "specs": specs}).encode(),
            capture_output=True,
            timeout=_CHECK_TIMEOUT_S,
            check=True,
            env={"PATH": PLAIN_PATH},
        )
        return cast("list[dict[str, Any]]", json.loads(answer.stdout))
    except (FileNotFoundError, PermissionError, subprocess.CalledProcessError, ValueError) as error:
        raise Misconfigured(f"npm's libraries cannot be run ({type(error).__name__}): reinstall this host.") from error
    except subprocess.TimeoutExpired as error:
        raise MachineExhausted("this machine is too busy to read the pins; try again later") from error
    except OSError as error:
        raise MachineExhausted.by(error, doing="read the pins") from error
