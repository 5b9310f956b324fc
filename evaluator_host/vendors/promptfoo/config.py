"""Reads a promptfoo configuration: its assertions become evaluators, its tests become rows.

An assertion with code stays as it is written. Assertions that only compare with a value share an evaluator for each
type; a row's criteria contain the value for its test. If some tests lack an assertion, the criteria also list each
row's assertions. Source of the format: promptfoo 0.121.20, its configuration reference.
"""

import csv
import io
import itertools
import json
import math
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Final

from evaluator_host.engine.contracts.imports import (
    SUFFIXES,
    Found,
    FoundEvaluator,
    FreeNames,
    ImportedRows,
    SentFiles,
    slug,
)
from evaluator_host.engine.contracts.row_documents import CRITERIA
from evaluator_host.engine.contracts.yaml_documents import read_yaml
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Contract, Json, Language
from evaluator_host.vendors.promptfoo import asserts, judged

_FILE: Final = "file://"
_CODE: Final = {"python": Language.PYTHON, "javascript": Language.JAVASCRIPT}
_MOST_ROWS: Final = 100_000
_DIGITS, _ZEROS = 21, 6  # JavaScript writes numbers with an exponent from 1e21 on, and below 1e-6
_DEEPEST: Final = 20  # maximum depth of references from file to file, and of nested assert-sets
_USED: Final = frozenset({"tests", "defaultTest", "scenarios", "assertionTemplates", "description", "$schema", "tags"})
_REASONS: Final = {
    "prompts": "the host does not fill in promptfoo's prompts: give a job a target, or rows with outputs",
    "providers": "the host does not call promptfoo's providers: give a job a target, or rows with outputs",
    "targets": "the host does not call promptfoo's providers: give a job a target, or rows with outputs",
    "derivedMetrics": "the host does not compute scores from several asserts: compute them from the job's summary, or "
    "return all of them as namedScores of one python assert",
    "extensions": "only promptfoo itself runs its hooks",
    "transform": "the host does not transform outputs: do so in the evaluator, or before the import",
    "postprocess": "the host does not transform outputs: do so in the evaluator, or before the import",
    "contextTransform": "the host does not transform outputs: do so in the evaluator",
    "weight": "the host does not combine asserts: each has its own score, without a weight",
    "assertScoringFunction": "the host does not combine asserts: each has its own score",
    "threshold": "the host does not combine asserts: each has its own score",
    "provider": "the host does not call promptfoo's providers: a judge asks the model that you name for the import",
    "rubricPrompt": "an imported judge has its own prompt",
    "metric": "",
}
_OTHER: Final = "the option works only in promptfoo itself"
_ROW_FIELDS: Final = ("description", "metadata")
_SPECIAL: Final = re.compile(
    r"__(expected\d*|description|prefix|suffix|providerOutput|metric|threshold)|__(?:metadata|config):.*"
)
_PREFIXED: Final = re.compile(
    r"(?P<type>(?:not-)?[a-z][a-z-]*)(?:\((?P<threshold>[0-9]+(?:\.[0-9]+)?|\.[0-9]+)\))?(?::(?P<value>.*))?", re.DOTALL
)
_SHORT: Final = {"fn": "javascript", "eval": "javascript", "grade": "llm-rubric"}
_BARE: Final = frozenset({"is-json", "contains-json", "is-sql", "is-xml"})


@dataclass(slots=True)
class _Group:
    """Assertions in several tests, all scored by one evaluator.

    Attributes:
      evaluator: The evaluator, without its name and the value.
      label: Text that the evaluator's name is made from.
      configs: The assertion's value in each row with this assertion, by row number; empty for an assertion with code.
    """

    evaluator: FoundEvaluator
    label: str
    configs: dict[int, dict[str, Json]] = field(default_factory=dict)

    @property
    def has_one_config(self) -> bool:
        """Whether the assertion has the same value in all rows."""
        return len({json.dumps(one, sort_keys=True) for one in self.configs.values()}) == 1


class _Configurations:
    def recognises(self, document: Json) -> bool:
        """Whether a document has tests with assertions, or other parts that only a promptfoo configuration has."""
        if not isinstance(document, dict):
            return False
        tests = _list(document.get("tests"))
        known = {"prompts", "providers", "targets", "tests", "defaultTest", "scenarios", "assertionTemplates"}
        return any(isinstance(one, dict) and "assert" in one for one in tests) or len(known & document.keys()) >= 2

    def read(self, document: Json, files: SentFiles, name: str) -> Found:
        """Return the evaluators and rows of a configuration.

        Raises:
          InvalidRequest: a file of the configuration has a fault, or there are too many tests.
        """
        return _Reader(document, files, name).found()


CONFIGURATIONS: Final = _Configurations()


class _Reader:
    def __init__(self, document: dict[str, Json], files: SentFiles, name: str) -> None:
        self._document = document
        self._files = files
        self._name = slug(name) or "promptfoo"
        self._found = Found("promptfoo")
        self._groups: dict[str, _Group] = {}
        self._records: list[dict[str, Json]] = []

    def found(self) -> Found:
        for key in sorted(self._document.keys() - _USED):
            self._found.leave_out(key, _REASONS.get(key) or _OTHER, self._document[key])
        default = self._mapping(self._document.get("defaultTest"), "defaultTest")
        for where, test in self._tests(self._document.get("tests"), "tests"):
            self._read_test(test, default, where)
        for where, test in self._scenarios():
            self._read_test(test, default, where)
        if not self._records and default.get("assert"):
            self._add_asserts(default["assert"], "defaultTest.assert", [])
        self._name_groups()
        return self._found

    # The tests of a configuration

    def _tests(self, given: Json, where: str, depth: int = 0) -> Iterator[tuple[str, dict[str, Json]]]:
        """Yield each test with its path in the configuration."""
        if depth > _DEEPEST:
            raise InvalidRequest(
                f"the files that {where} names refer to one another in a circle; remove one of these references"
            )
        for index, one in enumerate(_list(given)):
            place = f"{where}[{index}]" if isinstance(given, list) else where
            if isinstance(one, dict):
                yield place, one
            elif isinstance(one, str):
                yield from self._tests_of_file(one, place, depth)
            elif one is not None:
                self._found.leave_out(place, "a test must be an object or the path of a file", one)

    def _tests_of_file(self, path: str, place: str, depth: int) -> Iterator[tuple[str, dict[str, Json]]]:
        path = path.removeprefix(_FILE)
        if re.match(r"[a-z]+://", path):
            reason = "the host does not fetch tests from other servers: download the file, and import it too"
            self._found.leave_out(place, reason, path)
            return
        paths = self._files.matching(path) if "*" in path else [path]
        if not paths:
            self._found.leave_out(place, f"none of the files in the import matches {path}", path)
        for one in paths:
            suffix = posixpath.splitext(one.partition("#")[0])[1].lower()
            if suffix not in (".csv", ".tsv", ".json", ".jsonl", ".yaml", ".yml"):
                reason = "the host does not run programs that make tests: run the program yourself, and import the rows"
                self._found.leave_out(
                    place,
                    reason
                    if suffix in SUFFIXES
                    else f"tests cannot be in files {f'with the suffix {suffix}' if suffix else 'without a suffix'}",
                    one,
                )
                continue
            text = self._files.text(one)
            if text is None:
                self._found.leave_out(place, f"the import does not contain the file {one}", one)
            elif suffix in (".csv", ".tsv"):
                yield from (
                    (f"{one}:{line}", test) for line, test in _csv_tests(text, "\t" if suffix == ".tsv" else ",")
                )
            else:
                yield from self._tests(_decoded(text, one), one, depth + 1)

    def _scenarios(self) -> Iterator[tuple[str, dict[str, Json]]]:
        for index, one in enumerate(_list(self._document.get("scenarios"))):
            scenario = self._mapping(one, f"scenarios[{index}]")
            tests = list(self._tests(scenario.get("tests"), f"scenarios[{index}].tests")) or [
                (f"scenarios[{index}]", {})
            ]
            for number, given in enumerate(_list(scenario.get("config"))):
                config = self._mapping(given, f"scenarios[{index}].config[{number}]")
                for where, test in tests:
                    together = [*_list(config.get("assert")), *_list(test.get("assert"))]
                    merged = {**config, **test, "vars": {**_object(config.get("vars")), **_object(test.get("vars"))}}
                    yield where, {**merged, "assert": together}

    def _read_test(self, test: dict[str, Json], default: dict[str, Json], where: str) -> None:
        """Add a test's assertions, and a row for each combination of the test's variables."""
        options = {**_object(default.get("options")), **_object(test.get("options"))}
        given = self._mapping(test.get("vars"), f"{where}.vars")
        variables = {**self._mapping(default.get("vars"), "defaultTest.vars"), **given}
        first = len(self._records)
        for combination in _combinations(self._values(variables)):
            if len(self._records) >= _MOST_ROWS:
                raise InvalidRequest(f"the configuration has over {_MOST_ROWS:,} tests; import them in parts")
            metadata = {**_object(default.get("metadata")), **_object(test.get("metadata"))}
            record = {"description": test.get("description"), "metadata": metadata}
            self._records.append({"inputs": combination, **{key: one for key, one in record.items() if one}})
        rows = list(range(first, len(self._records)))
        for key in sorted(test.keys() - {"vars", "assert", "options", *_ROW_FIELDS}):
            self._found.leave_out(f"{where}.{key}", _REASONS.get(key) or _OTHER, test[key])
        for key in sorted(_object(test.get("options")).keys() - {"disableDefaultAsserts"}):
            self._found.leave_out(f"{where}.options.{key}", _REASONS.get(key) or _OTHER, test["options"][key])
        self._add_asserts(test.get("assert"), f"{where}.assert", rows)
        if not options.get("disableDefaultAsserts"):
            self._add_asserts(default.get("assert"), "defaultTest.assert", rows)

    def _values(self, variables: dict[str, Json]) -> dict[str, Json]:
        """Replace the names of files in variables with the files' contents."""
        return {name: self._value(one, f"vars.{name}") for name, one in variables.items()}

    def _value(self, value: Json, where: str) -> Json:
        if not isinstance(value, str) or not value.startswith(_FILE):
            return value
        path = value.removeprefix(_FILE)
        suffix = posixpath.splitext(path)[1].lower()
        text = None if suffix in SUFFIXES else self._files.text(path)
        if text is None:
            missing = f"the import does not contain the file {path}"
            reason = "the value comes from a program, which the host does not run" if suffix in SUFFIXES else missing
            self._found.leave_out(where, reason, value)
            return value
        return _decoded(text, path) if suffix in (".json", ".yaml", ".yml") else text.strip()

    # The assertions of a test

    def _add_asserts(self, given: Json, where: str, rows: list[int]) -> None:
        taken: dict[str, int] = {}
        for place, one in self._asserts(given, where):
            self._add_assert(one, place, rows, taken)

    def _asserts(self, given: Json, where: str, depth: int = 0) -> Iterator[tuple[str, dict[str, Json]]]:
        """Yield each assertion, including those in an `assert-set`; replace template references with the templates."""
        for index, written in enumerate(_list(given)):
            place, one = f"{where}[{index}]", written
            if isinstance(written, dict) and isinstance(written.get("$ref"), str):
                one = {**self._template(written["$ref"], place), **written}
                del one["$ref"]
            if not isinstance(one, dict) or not isinstance(one.get("type"), str):
                self._found.leave_out(place, "an assert must be an object with a type", one)
            elif one["type"] == "assert-set" and depth < _DEEPEST:
                for key in sorted(one.keys() & {"threshold", "weight"}):
                    self._found.leave_out(f"{place}.{key}", _REASONS[key], one[key])
                yield from self._asserts(one.get("assert"), f"{place}.assert", depth + 1)
            else:
                yield place, one

    def _template(self, reference: str, where: str) -> dict[str, Json]:
        value: Json = self._document
        for part in reference.removeprefix("#/").split("/"):
            value = value.get(part) if isinstance(value, dict) else None
        return self._mapping(value, f"{where} ({reference})")

    def _add_assert(self, one: dict[str, Json], place: str, rows: list[int], taken: dict[str, int]) -> None:
        for key in ("weight", "transform", "contextTransform", "provider", "rubricPrompt"):
            if key in one:
                self._found.leave_out(f"{place}.{key}", _REASONS[key], one[key])
        made = self._evaluator(one, place)
        if isinstance(made, str):
            self._found.leave_out(place, made, one)
            return
        evaluator, values = made
        label = str(one.get("metric") or (posixpath.splitext(evaluator.file)[0] if evaluator.file else one["type"]))
        same = repr((evaluator.code, evaluator.language, evaluator.entry, evaluator.threshold, evaluator.config, label))
        taken[same] = taken.get(same, 0) + 1  # two asserts of the same type in a test become two evaluators
        group = self._groups.setdefault(f"{same}#{taken[same]}", _Group(evaluator, posixpath.basename(label)))
        for row in rows:
            group.configs[row] = self._rendered(values, self._records[row]["inputs"], place)
        if not rows:
            group.configs[-1] = values

    def _evaluator(self, one: dict[str, Json], place: str) -> tuple[FoundEvaluator, dict[str, Json]] | str:
        """Return an assertion's evaluator and its value for a row, or say why the assertion has no evaluator."""
        type_, value, threshold = one["type"], one.get("value"), one.get("threshold")
        if type_ in _CODE:
            made = self._with_code(one, place)
            return made if isinstance(made, str) else (made, {})
        if type_.removeprefix(asserts.NEGATION) in _CODE:
            return "an assert with code cannot be negated: return the opposite in the code"
        if (code := judged.judge_program(type_)) is not None:
            found = FoundEvaluator(
                "", code, place, Language.PYTHON, Contract("promptfoo"), asks=judged.models_of(type_)
            )
            values = {} if value is None else {"value": self._value(value, place)}
            return found, values if threshold is None else {**values, "threshold": threshold}
        code = asserts.program(type_)
        if code is None:
            return asserts.REASONS.get(type_.removeprefix(asserts.NEGATION), asserts.UNKNOWN)
        if type_.removeprefix(asserts.NEGATION) in asserts.WITHOUT_VALUE and value is not None:
            return "the host has no package to check a JSON schema: write a python assert, and pin jsonschema"
        values = {} if value is None else {"value": self._value(value, place)}
        if isinstance(threshold, int | float) and type_.removeprefix(asserts.NEGATION) in asserts.WITH_THRESHOLD:
            values["threshold"] = threshold
        return FoundEvaluator("", code, place, Language.JAVASCRIPT, Contract("promptfoo")), values

    def _with_code(self, one: dict[str, Json], place: str) -> FoundEvaluator | str:
        value, threshold = one.get("value"), one.get("threshold")
        if not isinstance(value, str) or not value.strip():
            return "the assert has no code: its value must be a string"
        if threshold is not None and (isinstance(threshold, bool) or not isinstance(threshold, int | float)):
            return "the threshold is not a number"
        language, code, file, entry = _CODE[one["type"]], value, None, None
        if value.startswith(_FILE):
            path, colon, entry = value.removeprefix(_FILE).strip().partition(":")
            suffix = posixpath.splitext(path)[1].lower()
            if suffix not in SUFFIXES:
                return (
                    f"code in files {f'with the suffix {suffix}' if suffix else 'without a suffix'} does not run here"
                )
            text, file, language = self._files.text(path), self._files.path(path), SUFFIXES[suffix]
            if text is None:
                missing = f"the import does not contain the file {path}"
                return missing if file else f"the file {path} is outside the project"
            code, entry = text, entry if colon else None
        elif value.startswith("package:"):
            return "the code is in an npm package: import the code in your own file, and pin the package"
        config = _object(one.get("config"))
        return FoundEvaluator(
            "", code, place, language, Contract("promptfoo"),
            file=file, entry=entry or None, threshold=threshold, config=config,
        )  # fmt: skip

    def _rendered(self, values: dict[str, Json], variables: dict[str, Json], place: str) -> dict[str, Json]:
        """Replace `{{name}}` in an assertion's value with a row's variables."""

        def filled(value: Json) -> Json:
            if isinstance(value, list):
                return [filled(one) for one in value]
            if not isinstance(value, str) or not re.search(r"\{[{%#]", value):
                return value
            text = re.sub(r"\{\{\s*([\w.-]+)\s*\}\}", lambda match: _text(_at(variables, match[1])), value)
            if re.search(r"\{\{|\{%|\{#", text):
                reason = "the host can fill in variables only, but the template contains more than that"
                self._found.leave_out(f"{place}.value", reason, value)
            return text

        return {key: filled(value) for key, value in values.items()}

    # The names of the evaluators

    def _name_groups(self) -> None:
        """Name the evaluators; record each row's assertions, unless all rows have the same ones."""
        names, rows = FreeNames(), range(len(self._records))
        everywhere = all(len(group.configs) >= len(rows) and group.has_one_config for group in self._groups.values())
        for group in self._groups.values():
            evaluator, name = group.evaluator, names.give(self._name, group.label)
            config = {**evaluator.config, **(next(iter(group.configs.values()), {}) if everywhere else {})}
            description = str(self._document.get("description") or "")
            self._found.evaluators.append(replace(evaluator, name=name, config=config, description=description))
            for row, values in {} if everywhere else group.configs.items():
                if row >= 0:
                    given = {"config": {**config, **values}} if values else {}
                    self._records[row].setdefault(CRITERIA, {})[name] = given
        for record in () if everywhere else self._records:
            record.setdefault(CRITERIA, {})
        if self._records:
            self._found.rows.append(ImportedRows(self._name, self._records, "tests"))

    def _mapping(self, given: Json, where: str) -> dict[str, Json]:
        if isinstance(given, str) and given.startswith(_FILE):
            text = self._files.text(given.removeprefix(_FILE))
            if text is None:
                self._found.leave_out(where, f"the import does not contain the file {given.removeprefix(_FILE)}", given)
                return {}
            given = _decoded(text, given)
        if given is not None and not isinstance(given, dict):
            self._found.leave_out(where, "the value must be an object", given)
        return given if isinstance(given, dict) else {}


def _list(given: Json) -> list[Json]:
    return given if isinstance(given, list) else [] if given is None else [given]


def _object(given: Json) -> dict[str, Json]:
    return given if isinstance(given, dict) else {}


def _decoded(text: str, path: str) -> Json:
    if path.endswith(".jsonl"):
        return [read_yaml(line) for line in text.splitlines() if line.strip()]
    return read_yaml(text)


def _combinations(variables: dict[str, Json]) -> Iterator[dict[str, Json]]:
    """Yield the variables of each row. If a variable's value is a list, each row gets one of its items."""
    lists = {name: one for name, one in variables.items() if isinstance(one, list) and one}
    for chosen in itertools.product(*lists.values()):
        yield {**variables, **dict(zip(lists, chosen, strict=True))}


def _csv_tests(text: str, delimiter: str) -> Iterator[tuple[int, dict[str, Json]]]:
    """Yield each CSV record's line and test. promptfoo gives a meaning to columns that begin with two underscores."""
    reader = csv.DictReader(io.StringIO(text), delimiter=delimiter)
    for record in reader:
        columns = {name: one for name, one in record.items() if isinstance(name, str) and isinstance(one, str)}
        test: dict[str, Json] = {"vars": {name: one for name, one in columns.items() if not _SPECIAL.fullmatch(name)}}
        given = [one for name, one in columns.items() if name.startswith("__expected") and one.strip()]
        test["assert"] = [{**_csv_assert(one), **_metric(columns)} for one in given]
        metadata = {
            name.partition(":")[2]: one for name, one in columns.items() if name.startswith("__metadata:") and one
        }
        if metadata:
            test["metadata"] = metadata
        for name in columns.keys() & {"__description", "__threshold", "__prefix", "__suffix", "__providerOutput"}:
            if columns[name]:
                test[name.removeprefix("__")] = columns[name]
        yield reader.line_num, test


def _metric(columns: dict[str, str]) -> dict[str, Json]:
    return {"metric": columns["__metric"]} if columns.get("__metric") else {}


def _csv_assert(text: str) -> dict[str, Json]:
    """Parse a cell into an assertion: `contains: Paris`, `similar(0.8): hello`; other text means `equals`."""
    match = _PREFIXED.fullmatch(text.strip())
    if match is None:
        return {"type": "equals", "value": text}
    type_ = _SHORT.get(match["type"], match["type"])
    known = type_ in _CODE or type_.removeprefix(asserts.NEGATION) in _BARE or asserts.program(type_) is not None
    if match["value"] is None and type_.removeprefix(asserts.NEGATION) not in _BARE:
        return {"type": "equals", "value": text}
    if not known and "-" not in type_ and type_ not in ("similar", "factuality", "llm-rubric", "latency", "cost"):
        return {"type": "equals", "value": text}
    made: dict[str, Any] = {"type": type_}
    if match["value"] is not None:
        made["value"] = match["value"].strip()
    if match["threshold"]:
        made["threshold"] = float(match["threshold"])
    if type_.removeprefix(asserts.NEGATION).endswith(("-any", "-all")) and match["value"]:
        made["value"] = [one.strip() for one in match["value"].split(",")]
    return made


def _at(variables: dict[str, Json], path: str) -> Json:
    value: Json = variables
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _text(value: Json) -> str:
    """Return a variable as promptfoo's templates write it: like JavaScript's `String`, but null as an empty text."""
    if isinstance(value, list):
        return ",".join(map(_text, value))
    if isinstance(value, dict):
        return "[object Object]"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _number_text(value)
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def _number_text(value: float) -> str:
    """Return a number as JavaScript's `String` writes it (ECMA-262, Number::toString).

    As in JavaScript, integers are converted to floats first.
    """
    try:
        number = float(value)
    except OverflowError:
        number = math.inf if value > 0 else -math.inf
    if not math.isfinite(number):
        return json.dumps(number)
    sign, all_digits, exponent = Decimal(repr(number)).as_tuple()
    digits = "".join(map(str, all_digits)).rstrip("0")
    if not digits:
        return "0"
    before = len(all_digits) + int(exponent)  # number of digits before the decimal point
    if len(digits) <= before <= _DIGITS:
        text = digits.ljust(before, "0")
    elif 0 < before <= _DIGITS:
        text = f"{digits[:before]}.{digits[before:]}"
    elif -_ZEROS < before <= 0:
        text = f"0.{'0' * -before}{digits}"
    else:
        text = f"{digits[0]}{'.' if len(digits) > 1 else ''}{digits[1:]}e{before - 1:+d}"
    return f"{'-' if sign else ''}{text}"
