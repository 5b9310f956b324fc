"""The promises of a version to programs that call it: requests, answers and commands, as flat lists.

As part of a release, `python -m tests.stability.promised` writes the promises of this source tree to files. Between
releases the files do not change, and `test_promised.py` reports changes of the code that would break a program.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tests.described import described_app
from tests.docs.commands import leaf_commands

FOLDER: Final = Path(__file__).parent
ROUTES: Final = FOLDER / "routes.json"
COMMANDS: Final = FOLDER / "commands.json"
JSON: Final = "application/json"
MARK: Final = "!"
"""Mark at the end of a field's path: a request needs the field, or an answer always has it."""

Facts = dict[str, list[str]]
Route = dict[str, Facts]


def routes() -> dict[str, Route]:
    """Return the parameters, body fields and answer fields of each of the host's own routes."""
    document = described_app().openapi()
    found = {}
    for path, methods in document["paths"].items():
        if not path.startswith("/v1/"):
            continue
        for method, operation in methods.items():
            body = operation.get("requestBody", {}).get("content", {}).get(JSON, {}).get("schema", {})
            answers = {
                field: types
                for status, answer in sorted(operation["responses"].items())
                if status.startswith("2")
                for field, types in facts(answer.get("content", {}).get(JSON, {}).get("schema", {}), document).items()
            }
            parameters = {
                f"{one['in']}.{one['name']}{MARK if one.get('required') else ''}": ["any"]
                for one in operation.get("parameters", ())
            }
            found[f"{method.upper()} {path}"] = {
                "parameters": parameters,
                "body": facts(body, document),
                "answer": answers,
            }
    return found


def commands() -> dict[str, list[str]]:
    """Return the arguments and options of each command."""
    return {
        name: sorted(option for param in command.params for option in (*param.opts, *param.secondary_opts))
        for name, command in sorted(leaf_commands().items())
    }


def facts(schema: Mapping[str, Any], document: Mapping[str, Any]) -> Facts:
    """Return the types of each field in a schema, by the field's path. The path of a required field ends with `MARK`."""
    found: Facts = {}
    for place, type_ in _walk(schema, document, "", ()):
        found.setdefault(place, [])
        if type_ not in found[place]:
            found[place].append(type_)
    return {place: sorted(types) for place, types in sorted(found.items())}


def _walk(
    schema: Mapping[str, Any], document: Mapping[str, Any], place: str, above: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    if (ref := schema.get("$ref")) is not None:
        if ref in above:
            yield place, f"again {ref.rpartition('/')[2]}"
            return
        schema, above = document["components"]["schemas"][ref.rpartition("/")[2]], (*above, ref)
    several = [*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())]
    for one in several:
        yield from _walk(one, document, place, above)
    if several:
        return
    if "enum" in schema or "const" in schema:
        yield from ((place, f"value {value}") for value in schema.get("enum", [schema.get("const")]))
        return
    yield place, schema.get("type", "any")
    for name, inner in schema.get("properties", {}).items():
        mark = MARK if name in schema.get("required", ()) else ""
        yield from _walk(inner, document, f"{place.removesuffix(MARK)}.{name}{mark}", above)
    if isinstance(items := schema.get("items"), dict):
        yield from _walk(items, document, f"{place.removesuffix(MARK)}[]", above)
    if isinstance(values := schema.get("additionalProperties"), dict):
        yield from _walk(values, document, f"{place.removesuffix(MARK)}{{}}", above)


def broken(before: Mapping[str, Route], after: Mapping[str, Route]) -> Iterator[str]:
    """Yield everything that programs may rely on according to `before`, but not according to `after`."""
    for route, old in before.items():
        new = after.get(route)
        if new is None:
            yield f"{route} is gone"
            continue
        for part in ("parameters", "body"):
            yield from (f"{route}: {part} {one}" for one in _refused(old[part], new[part]))
        yield from (f"{route}: answer {one}" for one in _missed(old["answer"], new["answer"]))


def _refused(before: Facts, after: Facts) -> Iterator[str]:
    """Yield what programs may send according to `before`, but not according to `after`."""
    old, new = _unmarked(before), _unmarked(after)
    for place, types in old.items():
        if place not in new:
            yield f"{place} is gone"
            continue
        lost = set(types) - set(new[place]) - ({"integer"} if "number" in new[place] else set())
        if lost and "any" not in new[place]:
            yield f"{place} takes no {', '.join(sorted(lost))}"
    for place in after:
        if place.endswith(MARK) and place not in before and not _is_inside_new(place, old):
            yield f"{place.removesuffix(MARK)} is required"


def _missed(before: Facts, after: Facts) -> Iterator[str]:
    """Yield fields that every answer has according to `before`, but that may be missing according to `after`. New
    values of enumerations are allowed.
    """
    old, new = _unmarked(before), _unmarked(after)
    for place, types in old.items():
        if place not in new:
            yield f"{place} is gone"
            continue
        if "any" not in types:
            more = {one for one in set(new[place]) - set(types) if not one.startswith("value ")}
            if more - ({"integer"} if "number" in types else set()):
                yield f"{place} may be {', '.join(sorted(more))}"
        if f"{place}{MARK}" in before and f"{place}{MARK}" not in after:
            yield f"{place} may be missing"


def _unmarked(marked: Facts) -> Facts:
    return {place.removesuffix(MARK): types for place, types in marked.items()}


def _is_inside_new(place: str, old: Facts) -> bool:
    """Whether a field is inside a new object, which no old program sends."""
    above = place.removesuffix(MARK).rpartition(".")[0].removesuffix("[]").removesuffix("{}")
    return bool(above) and above not in old


def lost_options(before: Mapping[str, list[str]], after: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield the commands and options that are in `before` but not in `after`."""
    for command, options in before.items():
        if command not in after:
            yield f"{command} is gone"
        else:
            yield from (f"{command} has no {option}" for option in options if option not in after[command])


def read(path: Path) -> Any:
    return json.loads(path.read_text())


if __name__ == "__main__":
    for path, found in ((ROUTES, routes()), (COMMANDS, commands())):
        lines = (f"{json.dumps(name)}: {json.dumps(one, separators=(',', ':'))}" for name, one in sorted(found.items()))
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
