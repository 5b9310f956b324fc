"""Reads an evaluator from a file, with its exact package versions (pins), its project's files and its test cases."""

import asyncio
import glob
import json
import os.path
import platform
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import pydantic

from evaluator_host.engine.config.settings import SETS_FOLDER, SandboxChoice, Settings
from evaluator_host.engine.contracts.imports import SUFFIXES
from evaluator_host.engine.contracts.table import all_dialects
from evaluator_host.engine.contracts.yaml_documents import read_yaml
from evaluator_host.engine.data_files import digest_of
from evaluator_host.engine.packages.declared import (
    DeclaredPin,
    declared_imports,
    declared_names,
    declared_ranges,
    excerpt,
    name_of_pin,
)
from evaluator_host.engine.packages.lock import Pin
from evaluator_host.engine.packages.own_files import Project, find_project, texts_below, with_files
from evaluator_host.engine.packages.pin_parser import parse
from evaluator_host.engine.packages.scripts import read_script
from evaluator_host.engine.packages.suggest import imported_packages, is_known
from evaluator_host.engine.service.missing_imports import asks_models
from evaluator_host.engine.system.files import read_utf8
from evaluator_host.platform.datasets.mapping import Mapping
from evaluator_host.platform.datasets.rows import RowFile
from evaluator_host.platform.evaluators.bodies import BudgetIn, EvaluatorIn, LimitsIn, SettingsIn
from evaluator_host.platform.evaluators.cases import case_name, read_expect
from evaluator_host.platform.http.pins import EnvironmentIn
from evaluator_host.platform.plugins import plugins
from evaluator_host.platform.terminal.console import err, plain
from evaluator_host.platform.terminal.data_files import split_files
from evaluator_host.types.errors import InvalidPin, InvalidRequest, Problem
from evaluator_host.types.evaluator import (
    AUTO_PACKAGES,
    ROW_FIELDS,
    Evaluator,
    EvaluatorSettings,
    Language,
    Limits,
    ModelBudget,
    Policy,
)
from evaluator_host.types.json_values import InvalidJson, decode_json, encode_json

_Body = TypeVar("_Body", bound=pydantic.BaseModel)
EXPECT: Final = "expect"
_KEPT: Final = (
    *("contract", "packages", "threshold", "settings", "limits", "policy", "python"),
    *("models", "budget", "network", "secrets"),
)  # fmt: skip
"""Fields that `evaluators update` keeps from the previous version."""
_DEFAULTS: Final[dict[str, Any]] = {
    one.name: getattr(made, one.name)
    for made in (Evaluator(""), EvaluatorSettings(), Limits(), ModelBudget())
    for one in fields(made)
}
_SHOWN_FILES: Final = 10
_LOCK_BYTES: Final = 64 << 20  # size limit of a lock file that is read
_OPTIONS: Final = {"packages": "--package"}  # fields whose command-line option has another name


@dataclass(frozen=True, slots=True)
class LoadedEvaluator:
    """An evaluator, the version of Python that its file requires, and messages about other files that go with it."""

    evaluator: Evaluator
    requires_python: str | None = None
    told: tuple[str, ...] = ()  # messages that say which files are sent and which are not
    data: dict[str, Path] = field(default_factory=dict)  # paths of the data files on this machine, keyed by digest
    declared: dict[str, str] = field(default_factory=dict)  # pins in a lock file of the project, keyed by package


def read_evaluator(
    file: Path,  # file with the source
    language: Language | None,  # language of the file; None if the suffix decides
    *,
    host: Settings,  # settings with the package indexes, where a version for an inexact pin is looked up
    project: Project | None = None,  # project whose files are sent; None for the project that contains the file
    extra: Sequence[Path] = (),  # further files to send, and folders of data files
    # folders whose files are all sent; a folder that contains `file` is the project's root
    folders: Sequence[Path] = (),
    alone: bool = False,  # whether to leave out the files of the project
    # fields as in the body of `POST /v1/evaluate`, but without nesting in `limits` and `settings`. Pins in the file
    # (PEP 723, `npm:` specifiers) are added to `packages`; `config` is JSON, or the path of a JSON file.
    **fields: Any,
) -> LoadedEvaluator:
    """Return the evaluator in a file. A field that is None keeps its default.

    The evaluator also gets the files of its project that it imports, directly or through other files.

    Raises:
      InvalidPin: the file declares a package that is not pinned exactly.
      InvalidRequest: the file is not readable source, a field is invalid, or a file of the project cannot be sent.
    """
    if fields.get("config") is not None:
        fields["config"] = _config(fields["config"])
    language = language or _language(file)
    script = read_script(read_utf8(file), language, parse=partial(_parse, host))
    fields["packages"] = [*(fields.get("packages") or ()), *(pin.text for pin in script.pins)]
    evaluator = evaluator_of(code=script.source, language=language, **fields)
    if alone or evaluator.policy is not Policy.NONE:
        return LoadedEvaluator(evaluator, script.requires_python)
    around = project or _project(file, language)
    above = next((one for one in folders if file.resolve().is_relative_to(one.resolve())), None)
    if above is not None:
        around = around.rooted(above.resolve())
    found = [texts_below(folder, around) for folder in folders]
    texts, data = split_files(extra, around.root)
    for path in (path for _, left in found for path in left if not path.is_symlink() and path.is_file()):
        data[path.relative_to(around.root.resolve()).as_posix()] = path
    evaluator = with_files(evaluator, file, around, extra=[*texts, *(path for sent, _ in found for path in sent)])
    digests = {path: digest_of(one) for path, one in data.items()}
    evaluator = replace(evaluator, data=digests)
    others = [path for _, left in found for path in left if path not in data.values()]
    found_pins, ranges = _declared(evaluator, file, around)
    names = ((one, name_of_pin(one.pin)) for one in found_pins)
    declared = [one for one, name in names if name not in _replaced() and _may_take(name, evaluator)]
    told = (*_told(evaluator, around, others), *_told_of(declared, evaluator))
    if AUTO_PACKAGES in evaluator.packages:
        texts_of = excerpt((one for one in found_pins if one not in declared), ranges)
        evaluator = replace(evaluator, packages=(*evaluator.packages, *(one.pin for one in declared)))
        evaluator = replace(evaluator, files={**texts_of, **evaluator.files})
    return LoadedEvaluator(
        evaluator,
        script.requires_python,
        told,
        {digests[path]: one for path, one in data.items()},
        {name_of_pin(one.pin): one.pin for one in found_pins},
    )


def _declared(evaluator: Evaluator, file: Path, around: Project) -> tuple[list[DeclaredPin], dict[str, str]]:
    """Return pins and version ranges in the project's files, for packages that the code imports but does not pin.

    The first value has the exact pins, also those of packages that the host does not choose by itself. The second value
    has the ranges of the other packages, keyed by name. If several files name a package, the nearest file counts.
    """
    language = evaluator.language
    texts = (evaluator.code, *evaluator.files.values())
    found: dict[str, DeclaredPin] = {}
    ranges: dict[str, str] = {}
    for files in _declaring(file, around, language):
        found = {name_of_pin(one.pin): one for one in declared_imports(files, texts, language)} | found
        ranges = declared_ranges(files, language) | ranges
    given = {name_of_pin(pin) for pin in evaluator.packages}
    pins = [one for name, one in sorted(found.items()) if is_known(name, language) and name not in given]
    named = imported_packages(language, texts) - found.keys() - given
    return pins, {name: ranges[name] for name in sorted(named & ranges.keys()) if _may_take(name, evaluator)}


def _may_take(name: str, evaluator: Evaluator) -> bool:
    return is_known(name, evaluator.language) and (bool(evaluator.models) or not asks_models(name))


def _replaced() -> set[str]:
    """Return the names of packages that other platforms publish.

    The host has a small replacement for each such package, and pins the package only if the replacement lacks something
    that the code uses.
    """
    parts = [one.sdk for one in all_dialects() if one.sdk is not None]
    return {name for sdk in parts for name in (sdk.module, *sdk.real, *sdk.also)}


def _told_of(declared: Sequence[DeclaredPin], evaluator: Evaluator) -> Iterator[str]:
    for one in declared:
        if AUTO_PACKAGES in evaluator.packages:
            yield f"{one.pin} is the version in {one.path}"
        else:
            yield f"{one.path} pins {one.pin}: to use this version, add --package {one.pin}"


def _declaring(file: Path, around: Project, language: Language) -> Iterator[dict[str, str]]:
    """For each folder from `file` up to the root of the checkout, yield the texts of files that pin versions, by name.

    The folders above count because a package in a workspace has only package.json in its own folder; the lock file is
    in the workspace's root.
    """
    top = (around.checkout or around.root).resolve()
    inner = file.resolve().parent
    for folder in (inner, *(above for above in inner.parents if above.is_relative_to(top))):
        found = {}
        for path in (folder / name for name in declared_names(language)):
            with suppress(OSError):  # a file that is missing, or that this user cannot read, is ignored
                if path.stat().st_size <= _LOCK_BYTES:
                    found[path.name] = path.read_text("utf-8", "replace")
        yield found


def _told(evaluator: Evaluator, project: Project, others: Sequence[Path]) -> Iterator[str]:
    paths = [*evaluator.files, *evaluator.data]
    if paths:
        sent = "1 file is sent" if len(paths) == 1 else f"{len(paths)} files are sent"
        yield f"{sent} with the evaluator, from {project.root}: {_listed(paths)}"
    if others:
        names = [os.path.relpath(path, project.root.resolve()) for path in others]
        yield f"left out, because it is not a file or is a link to a place outside the folder: {_listed(names)}"


def _listed(names: Sequence[str]) -> str:
    more = f", and {len(names) - _SHOWN_FILES} more" if len(names) > _SHOWN_FILES else ""
    return ", ".join(names[:_SHOWN_FILES]) + more


def tell_files(given: LoadedEvaluator) -> None:
    """Print to standard error which files are sent with an evaluator, and which are not."""
    for line in given.told:
        err.print(plain(line))


def kept_from(before: Evaluator, evaluator: Evaluator) -> tuple[Evaluator, list[str]]:
    """Return `evaluator` with the settings that it lacks from the version `before`, and a line for each such setting.

    Code, files and data are never taken from `before`. Nothing is taken if one of the two is a judge, or if their
    languages differ.
    """
    if before.judge is not None or evaluator.judge is not None or before.language is not evaluator.language:
        return evaluator, []
    kept: list[str] = []
    made = {name: _kept(name, getattr(before, name), getattr(evaluator, name), kept) for name in _KEPT}
    return replace(evaluator, **made), kept


def _kept(name: str, before: Any, now: Any, kept: list[str]) -> Any:
    """Return `before` if `now` is only the default, and then describe the setting in `kept`. Otherwise return `now`."""
    if is_dataclass(now) and not isinstance(now, type):
        parts = {
            one.name: _kept(one.name, getattr(before, one.name), getattr(now, one.name), kept) for one in fields(now)
        }
        return replace(now, **parts)
    if now != _DEFAULTS[name] or before == now:
        return now
    value = before if isinstance(before, str) else encode_json(before).decode()
    kept.append(f"{name} {', '.join(before) if isinstance(before, tuple) else value}")
    return before


def read_judge(file: Path, language: Language | None, **fields: Any) -> LoadedEvaluator:  # noqa: ARG001 - as below
    """Return an LLM judge read from a JSON or YAML file; only threshold, limits and budget are used from `fields`.

    Raises:
      InvalidRequest: the file cannot be read, or does not describe a judge (docs/models.md).
    """
    taken = ("threshold", "timeout_s", "memory_mb", "requests", "tokens", "cost")
    given = {name: value for name, value in fields.items() if name in taken}
    return LoadedEvaluator(evaluator_of(judge=read_yaml(read_utf8(file)), **given))


def _project(file: Path, language: Language) -> Project:
    """Return the project that contains a file.

    A platform's plugin may find the project. Otherwise the project is found from the folders around the file.
    """
    known = plugins().values() if language is Language.PYTHON else ()
    found = (one.find_project.load()(file) for one in known if one.find_project is not None)
    return next((project for project in found if project is not None), None) or find_project(file)


def evaluator_of(**fields: Any) -> Evaluator:
    """Build an evaluator from keyword arguments.

    `fields` are those of `POST /v1/evaluate`, but the fields of `limits`, `settings` and `budget` are at the top level.

    Raises:
      InvalidRequest: a field is unknown or has an invalid value.
    """
    body = {name: value for name, value in fields.items() if value is not None}
    body["secrets"] = {
        variable: name or variable for variable, _, name in (one.partition("=") for one in body.get("secrets") or ())
    }
    for group, model in (("settings", SettingsIn), ("limits", LimitsIn), ("budget", BudgetIn)):
        body[group] = {name: body.pop(name) for name in model.model_fields if name in body}
    return _validated(EvaluatorIn, body).to_model()


def read_set(pins: Sequence[str], language: Language, python: str | None) -> EnvironmentIn:
    """Return the package set that command-line options describe; `python` is a version, or None for the host's version.

    Raises:
      InvalidRequest: an option is invalid.
    """
    return _validated(EnvironmentIn, {"packages": list(pins), "language": language, "python": python})


def _validated(model: type[_Body], body: dict[str, Any]) -> _Body:
    try:
        return model.model_validate(body)
    except pydantic.ValidationError as error:
        problems = tuple(_problem(fault) for fault in error.errors())
        raise InvalidRequest("an option is invalid", problems=problems) from error


def _config(given: str) -> Any:
    """Parse an option that is JSON, or the path of a JSON file, and return the configuration in it."""
    text = given if given.lstrip().startswith("{") else read_utf8(Path(given))
    try:
        return decode_json(text.encode("utf-8", "replace"))
    except InvalidJson as error:
        raise InvalidRequest("an option is invalid", problems=(Problem("--config", str(error)),)) from error


def _parse(host: Settings, raw: Sequence[str], language: Language) -> tuple[Pin, ...]:
    """Parse pins. The error for an inexact pin suggests the newest matching version."""
    try:
        return parse(raw, language)
    except InvalidPin as error:
        from evaluator_host.engine.environments.record import target_for  # noqa: PLC0415 - builders, which few commands need
        from evaluator_host.engine.opening import index_settings  # noqa: PLC0415 - as above
        from evaluator_host.engine.packages.suggest import suggest  # noqa: PLC0415 - as above
        from evaluator_host.engine.packages.tools import LOOKUPS_AT_ONCE, in_turn  # noqa: PLC0415 - as above
        from evaluator_host.engine.sandbox.docker.image.recipe import image_platform  # noqa: PLC0415 - as above
        from evaluator_host.engine.sandbox.pythons import host_platform  # noqa: PLC0415 - as above
        from evaluator_host.engine.system.turns import Turns  # noqa: PLC0415 - as above

        in_image = host.sandbox is SandboxChoice.DOCKER
        target = target_for(image_platform(platform.machine()) if in_image else host_platform(), language)
        index = index_settings(host, host.data_dir / SETS_FOLDER / "build" / "lookups")
        run = in_turn(Turns(LOOKUPS_AT_ONCE), "")
        problems = asyncio.run(suggest(error.problems, raw, language, target=target, index=index, run=run))
        raise InvalidPin(error.detail, problems=problems) from error


def _language(file: Path) -> Language:
    try:
        return SUFFIXES[file.suffix.lower()]
    except KeyError:
        if not file.exists():
            said = f"cannot read {file}: there is no such file; for a stored evaluator use `jobs create`"
            raise InvalidRequest(said) from None
        known = " ".join(SUFFIXES)
        raise InvalidRequest(f"cannot tell the language of {file} by its suffix ({known}); add --language") from None


def _problem(fault: Any) -> Problem:
    name = str(fault["loc"][-1]) if len(fault["loc"]) == 1 or fault["loc"][0] != "packages" else "packages"
    option = _OPTIONS.get(name, f"--{name.replace('_', '-')}")
    return Problem(option, str(fault["msg"]))


def case_files(file: Path) -> list[Path]:
    """Return the files with the test cases of an evaluator's file: `NAME.cases.*` in the same folder, sorted."""
    return sorted(file.parent.glob(f"{glob.escape(file.stem)}.cases.*"))


def read_cases(file: Path, settings: Settings) -> list[dict[str, Any]]:
    """Return the test cases in a file: `{"case": name, "expect": …}` and the fields of the row.

    Raises:
      InvalidRequest: the file cannot be read, or `expect` of a row is missing or invalid.
    """

    def report(line: int, message: str) -> None:
        raise InvalidRequest(f"{file}:{line}: {message}")

    found: list[dict[str, Any]] = []
    for row in RowFile(file, Mapping.parse([]), max_row_bytes=settings.body_mb << 20, limit=None, report=report):
        expect = row.record.get(EXPECT)
        try:
            if isinstance(expect, str) and expect.lstrip().startswith("{"):
                expect = json.loads(expect)
            read_expect(expect)
        except ValueError as error:
            raise InvalidRequest(f"{file}:{row.line}: {error}") from error
        given = {name: getattr(row.row, name) for name in ROW_FIELDS}
        given = {name: value for name, value in given.items() if value not in (None, {})}
        given["inputs"] = {name: value for name, value in row.row.inputs.items() if name not in (EXPECT, "case")}
        found.append({"case": case_name(row.record, len(found)), **given, EXPECT: expect})
    return found
