"""Reads the pins in an evaluator's file: Python's PEP 723 block, or `npm:` specifiers in JavaScript or TypeScript.

Only the command line uses this module, on the user's own machine; a host never parses evaluators.
"""

import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from evaluator_host.engine.packages import pin_parser
from evaluator_host.engine.packages.lock import Pin
from evaluator_host.types.errors import InvalidPin, InvalidRequest
from evaluator_host.types.evaluator import Language

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

Parse: TypeAlias = Callable[[Sequence[str], Language], tuple[Pin, ...]]

# the regular expression for a block, copied from PEP 723
_BLOCK: Final = re.compile(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$")
_LATE: Final = 999  # a patch release that no Python 3.x will reach
_DECLARATIONS: Final = frozenset({"import_statement", "export_statement", "import_require_clause"})
# maximum length in bytes of the expression before a call's arguments, which may be `require` or `import`
_LOADER_BYTES: Final = 100
_LOADERS: Final = frozenset({b"import", b"require", b"require.resolve"})
_NPM: Final = re.compile(r"npm:/?(?P<pin>(?:@[^/@]+/)?[^/@]*(?:@[^/]*)?)(?P<path>/.*)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class PinnedScript:
    """The pins in a file, and its source for the runner, in which each token has its original line and column."""

    pins: tuple[Pin, ...]
    source: str
    requires_python: str | None = None  # the range in the PEP 723 block, see `require_python`


def read_script(source: str, language: Language, *, parse: Parse = pin_parser.parse) -> PinnedScript:
    """Return the pins that a file declares, and the file's source without these pins.

    Python: `dependencies` of the `script` block, which must be exact pins; the source stays as it is. JavaScript and
    TypeScript: the module specifier `npm:name@1.2.3/sub` becomes `name/sub`. Spaces after the closing quote replace the
    missing characters, so that errors keep the author's lines and columns.

    Raises:
      InvalidPin: a dependency is not pinned exactly; the field `packages[i]` gives its position in the file.
      InvalidRequest: the block is not TOML, there are two blocks, or `requires-python` is not a range.
    """
    if language is not Language.PYTHON:
        return _javascript(source, language, parse)
    metadata = _block(source)
    if metadata is None:
        return PinnedScript((), source)
    required = metadata.get("requires-python")
    if required is not None:
        _range(required)
    dependencies = metadata.get("dependencies", [])
    if not isinstance(dependencies, list) or not all(isinstance(item, str) for item in dependencies):
        raise _invalid("`dependencies` must be a list of strings, such as ['numpy==2.1.0'].")
    return PinnedScript(parse(dependencies, language), source, required)


def require_python(required: str, version: str) -> None:
    """Raise when a Python version is outside the range that a file requires.

    Args:
      required: The range, from `PinnedScript.requires_python`.
      version: `3.13` or `3.13.2`. If it has two parts, any patch release may satisfy the range.

    Raises:
      InvalidRequest: the version is outside the range.
    """
    allowed = _range(required)
    releases = [version] if version.count(".") > 1 else [f"{version}.0", f"{version}.{_LATE}"]
    if any(allowed.contains(release, prereleases=True) for release in releases):
        return
    raise _invalid(
        f"the file requires Python {required}, and evaluators run on Python {version} here: "
        "change `requires-python`, or run it on a host with such a Python."
    )


def _block(source: str) -> dict[str, Any] | None:
    unix = source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    blocks = [found for found in _BLOCK.finditer(unix) if found["type"] == "script"]
    if not blocks:
        return None
    if len(blocks) > 1:
        raise _invalid("the file has two `script` blocks; keep one.")
    lines = blocks[0]["content"].splitlines()
    content = "\n".join(line[2:] if line.startswith("# ") else line[1:] for line in lines)
    try:
        return tomllib.loads(content)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _invalid(f"the `script` block is not TOML: {error}.") from error


def _range(required: object) -> SpecifierSet:
    try:
        if isinstance(required, str):
            return SpecifierSet(required)
    except InvalidSpecifier:
        pass
    raise _invalid("`requires-python` must be a version range such as '>=3.11'.")


def _invalid(message: str) -> InvalidRequest:
    return InvalidRequest.of("code", f"Inline script metadata (PEP 723): {message}")


def _javascript(source: str, language: Language, parse: Parse) -> PinnedScript:
    if "npm:" not in source:
        return PinnedScript((), source)
    raw: list[str] = []
    lines: list[int] = []
    pieces: list[str] = []
    done = 0
    for specifier in module_specifiers(source):
        found = _NPM.fullmatch(specifier.text)
        if found is None:
            continue
        raw.append(found["pin"])
        lines.append(source.count("\n", 0, specifier.start) + 1)
        bare = _name(found["pin"]) + (found["path"] or "")
        quote = source[specifier.end]
        pieces += [source[done : specifier.start], bare, quote, " " * (len(specifier.text) - len(bare))]
        done = specifier.end + 1
    try:
        known = parse(raw, language)
    except InvalidPin as error:
        raise _with_lines(error, lines) from None
    return PinnedScript(known, "".join([*pieces, source[done:]]))


@dataclass(frozen=True, slots=True)
class Specifier:
    """One module specifier, without its quotes: `source[start:end] == text`."""

    start: int
    end: int
    text: str


def module_specifiers(source: str) -> list[Specifier]:
    """Return all specifiers of `import`, `export … from`, `import()`, `require()`, `require.resolve()`, in order.

    JavaScript is parsed as TypeScript. If the program has syntax errors, some specifiers may be missing.
    """
    encoded = source.encode("utf-8", "surrogatepass")
    specifiers = []
    for node in nodes_below(syntax_tree(source).root_node):
        string = _specifier_of(node)
        quoted = b"" if string is None else string.text or b""
        # an unclosed string has only one quote
        if string is not None and len(quoted) > 1 and quoted[:1] == quoted[-1:]:
            start = len(encoded[: string.start_byte + 1].decode("utf-8", "surrogatepass"))
            text = quoted[1:-1].decode("utf-8", "surrogatepass")
            specifiers.append(Specifier(start, start + len(text), text))
    return specifiers


def syntax_tree(source: str) -> "Tree":
    """Return the syntax tree of a program in JavaScript or TypeScript."""
    import tree_sitter  # noqa: PLC0415 - commands that read no JavaScript start without it
    import tree_sitter_typescript  # noqa: PLC0415

    grammar = tree_sitter.Language(tree_sitter_typescript.language_typescript())
    return tree_sitter.Parser(grammar).parse(source.encode("utf-8", "surrogatepass"))


def nodes_below(node: "Node") -> Iterator["Node"]:
    """Yield a node and all nodes below it in the order of the source.

    This function does not use recursion, because a program may nest deeply.
    """
    cursor = node.walk()
    while True:
        if cursor.node is not None:
            yield cursor.node
        if cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return


def _specifier_of(node: "Node") -> "Node | None":
    """Return the node with a module's name, if `node` is an import, an export or a call that loads it; else None."""
    if node.type in _DECLARATIONS:
        return node.child_by_field_name("source")
    function = node.child_by_field_name("function") if node.type == "call_expression" else None
    arguments = node.child_by_field_name("arguments")
    if function is None or arguments is None or function.end_byte - function.start_byte > _LOADER_BYTES:
        return None
    if b"".join((function.text or b"").split()) not in _LOADERS:
        return None
    first = next((one for one in arguments.named_children if one.type != "comment"), None)
    return first if first is not None and first.type == "string" else None


def _name(pin: str) -> str:
    """Return the name in a pin: `@scope/name` from `@scope/name@1.2.3`."""
    at = pin.find("@", 1)
    return pin if at < 0 else pin[:at]


def _with_lines(error: InvalidPin, lines: list[int]) -> InvalidPin:
    problems = []
    for problem in error.problems:
        place = re.fullmatch(r"packages\[(\d+)\]", problem.field)
        where = f"line {lines[int(place[1])]}: " if place else ""
        problems.append(replace(problem, message=where + problem.message))
    return InvalidPin(error.detail, problems=tuple(problems))
