"""Checks an evaluator and prepares it for calls: cleans the source, computes the digest, describes its sandbox."""

import dataclasses
import hashlib
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import orjson

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.contracts.table import dialect_of
from evaluator_host.engine.environments.record import empty_environment
from evaluator_host.engine.environments.store import InstalledSet
from evaluator_host.engine.packages.declared import declared_pins
from evaluator_host.engine.packages.suggest import known_modules
from evaluator_host.engine.pool import LeaseRequest
from evaluator_host.engine.sandbox.messages import LoadRequest
from evaluator_host.engine.service.files import file_problems, is_text
from evaluator_host.engine.service.model_grants import environment_of
from evaluator_host.engine.service.pins import PinLookup
from evaluator_host.engine.service.source import CleanSource, clean
from evaluator_host.types.errors import InvalidRequest, Problem
from evaluator_host.types.evaluator import (
    Contract,
    DataFolder,
    Environment,
    Evaluator,
    Language,
    Limits,
    Policy,
    SandboxSpec,
    StandIn,
)
from evaluator_host.types.json_values import is_small
from evaluator_host.types.outcome import Note
from evaluator_host.types.warnings import remedy_of

_NAME_CHARS = 1000  # maximum number of characters of a name in the settings
_SMALLER = "move data into rows or data files (`data`), or let the operator raise EVALUATOR_HOST_CODE_KB"
cleaned = lru_cache(maxsize=4)(clean)  # cached, because a new evaluator is cleaned in two places


@dataclass(frozen=True, slots=True)
class Prepared:
    """An evaluator that is ready to be called; `environment_ms` is how long it took to install its package set.

    `pins` finds the packages for missing imports of the code.
    """

    evaluator: Evaluator
    digest: str
    source: CleanSource
    environment: Environment
    request: LeaseRequest
    pins: PinLookup
    environment_ms: float = 0.0
    chosen: tuple[str, ...] = ()  # pins that the host has chosen for the code's imports

    @property
    def notes(self) -> tuple[Note, ...]:
        """Return notes on how the code and its packages were changed before loading."""
        if not self.chosen:
            return self.source.notes
        declared = {one.pin: one.path for one in declared_pins(self.evaluator.files, self.evaluator.language).values()}
        pins = [f"{pin} (from {declared[pin]})" if pin in declared else pin for pin in self.chosen]
        message = f"the host chose packages for the imports of the code: {', '.join(pins)}"
        return (*self.source.notes, Note("packages_chosen", message, remedy_of("packages_chosen")))

    def for_rows_together(self) -> "Prepared":
        """Return the evaluator without `score_output`, which only applies to single rows."""
        settings = dataclasses.replace(self.evaluator.settings, score_output=None)
        return dataclasses.replace(self, evaluator=dataclasses.replace(self.evaluator, settings=settings))

    def loaded_within(self, timeout_s: float) -> "Prepared":
        """Return the evaluator with this time limit for its load, unless its own limit is lower."""
        load = self.request.load
        load = dataclasses.replace(load, timeout_s=min(timeout_s, load.timeout_s))
        return dataclasses.replace(self, request=dataclasses.replace(self.request, load=load))

    def with_secrets(self, secrets: dict[str, str]) -> "Prepared":
        """Return the evaluator with the values of its secrets.

        If the value of a secret changes, the evaluator gets new sandboxes.
        """
        mark = hashlib.sha256(orjson.dumps(secrets, option=orjson.OPT_SORT_KEYS)).hexdigest()
        load = dataclasses.replace(self.request.load, secrets=secrets)
        request = dataclasses.replace(self.request, digest=f"{self.request.digest} {mark}", load=load)
        return dataclasses.replace(self, request=request)

    def with_network(self) -> "Prepared":
        """Return the evaluator for use in sandboxes that have this machine's network.

        Calls without the network never share these sandboxes.
        """
        spec = dataclasses.replace(self.request.spec, network=True)
        request = dataclasses.replace(self.request, digest=f"network {self.request.digest}", spec=spec)
        return dataclasses.replace(self, request=request)


def require_fit(evaluator: Evaluator, settings: Settings) -> None:
    """Check an evaluator against the operator's limits.

    Raises:
      InvalidRequest: a limit or the code is too large, or the language does not support the policy or contract.
    """
    evaluator = dataclasses.replace(evaluator, limits=settings.fitted(evaluator.limits))
    problems = [*_limit_problems(evaluator, settings), *_other_problems(evaluator, settings)]
    if problems:
        raise InvalidRequest("the evaluator is not valid", problems=tuple(problems))


def prepare(
    evaluator: Evaluator,
    *,
    settings: Settings,
    pins: PinLookup,
    workspace: str,
    check: bool = False,
    known: InstalledSet | None = None,
    stand_in: StandIn | None = None,
    python: str | None = None,
    data: DataFolder | None = None,
) -> Prepared:
    """Return an evaluator that is ready for calls.

    If `check` is true, the evaluator will only be loaded, and its imports listed. `known` is the installed package set
    that the evaluator pins; None if it has no pins, and then `python` is its version of Python. `stand_in` are the
    host's modules that replace its SDK, and `data` is the folder with its data files.

    Raises:
      InvalidRequest: the evaluator is not valid (see `require_fit`).
    """
    require_fit(evaluator, settings)
    source = cleaned(evaluator.code, evaluator.language)
    environment = empty_environment(evaluator.language, python)
    if known is not None:
        environment = known.environment
        evaluator = dataclasses.replace(evaluator, packages=known.packages)
    digest = evaluator_digest(evaluator)  # computed with the requested limits, so that it is the same on every host
    limits = settings.fitted(evaluator.limits)
    evaluator = dataclasses.replace(evaluator, limits=limits)
    # the key contains the environment's digest, because the same pins may later be resolved to other versions
    key = f"{digest} {environment.digest}" if known is not None else digest
    return Prepared(
        evaluator=evaluator,
        pins=pins,
        digest=digest,
        source=source,
        environment=environment,
        request=LeaseRequest(
            workspace=workspace,
            # a check gets its own digest, because the runner also examines imports then
            digest=f"check {key}" if check else key,
            spec=dataclasses.replace(sandbox_spec(environment, limits, stand_in), data=data),
            load=LoadRequest(
                code=source.code,
                language=evaluator.language,
                contract=evaluator.contract,
                entry=evaluator.settings.entry,
                policy=evaluator.policy,
                limits=limits,
                timeout_s=settings.load_timeout_s,
                check=check,
                config=evaluator.settings.config,
                repair=evaluator.settings.repair,
                files=evaluator.files,
                path=evaluator.path,
                known=known_modules(evaluator.language, (source.code, *evaluator.files.values())),
                environment=environment_of(evaluator),
            ),
        ),
    )


def sandbox_spec(environment: Environment, limits: Limits, stand_in: StandIn | None = None) -> SandboxSpec:
    """Return the sandbox spec for this environment, these limits, and the modules that replace an SDK (`stand_in`)."""
    return SandboxSpec(
        language=environment.language,
        environment=environment,
        memory_mb=limits.memory_mb,
        processes=limits.processes,
        disk_mb=limits.disk_mb,
        stand_in=stand_in,
    )


def evaluator_digest(evaluator: Evaluator) -> str:
    """Return a digest `sha256:…` of all that can change an evaluator's results, including the threshold."""
    content = dataclasses.asdict(evaluator)
    del content["name"], content["version"]
    # empty fields are left out, so that digests made before a field existed stay the same
    if content["python"] is None:
        del content["python"]
    if content["settings"]["score_output"] is None:
        del content["settings"]["score_output"]
    if not content["settings"]["repair"]:
        del content["settings"]["repair"]
    if content["settings"]["integers"] is None:
        del content["settings"]["integers"]
    if not content["files"]:
        del content["files"], content["path"]
    if not content["models"]:
        del content["models"], content["budget"]
    for name in ("network", "secrets", "judge", "data"):
        if not content[name]:
            del content[name]
    try:
        encoded = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # raised for an integer beyond 64 bits
        encoded = json.dumps(content, sort_keys=True, ensure_ascii=False).encode("utf-8", "replace")
    return "sha256:" + hashlib.sha256(encoded).hexdigest()


def _limit_problems(evaluator: Evaluator, settings: Settings) -> list[Problem]:
    ceilings = settings.limit_ceilings
    found = []
    for field in dataclasses.fields(ceilings):
        asked, ceiling = getattr(evaluator.limits, field.name), getattr(ceilings, field.name)
        if asked > ceiling:
            found.append(
                Problem(
                    f"evaluator.limits.{field.name}",
                    f"{asked:g} is over this host's ceiling of {ceiling:g}",
                    f"ask for at most {ceiling:g}, or let the operator raise EVALUATOR_HOST_MAX_{field.name.upper()}",
                )
            )
    asked, ceiling = evaluator.budget.requests, settings.max_model_requests
    if asked is not None and asked > ceiling:
        hint = f"ask for at most {ceiling}, or let the operator raise EVALUATOR_HOST_MAX_MODEL_REQUESTS"
        found.append(Problem("evaluator.budget.requests", f"{asked} is over this host's ceiling of {ceiling}", hint))
    return found


def _settings_problems(evaluator: Evaluator, settings: Settings) -> Iterator[Problem]:
    own = evaluator.settings
    for name in ("correct_answer_key", "entry", "score_output"):
        if len(getattr(own, name) or "") > _NAME_CHARS:
            yield Problem(f"evaluator.settings.{name}", f"a name may have at most {_NAME_CHARS} characters")
    if not is_small(own.config, values=sys.maxsize, characters=settings.code_kb << 10):
        problem = f"its text is over this host's ceiling of {settings.code_kb} KB"
        yield Problem("evaluator.settings.config", problem, _SMALLER)


def _other_problems(evaluator: Evaluator, settings: Settings) -> list[Problem]:
    found = []
    size_kb = sum(len(text.encode("utf-8", "replace")) for text in (evaluator.code, *evaluator.files.values())) / 1024
    if size_kb > settings.code_kb:
        files = " with its files" if evaluator.files else ""
        found.append(
            Problem(
                "evaluator.code",
                f"{size_kb:.0f} KB{files} is over this host's ceiling of {settings.code_kb} KB",
                _SMALLER,
            )
        )
    found += file_problems(evaluator)
    found += _settings_problems(evaluator, settings)
    if not is_text(evaluator.code):
        problem = "the code contains half of a surrogate pair, which is not a character"
        found.append(Problem("evaluator.code", problem, "paste it from its source again, as UTF-8"))
    if not evaluator.code.strip():
        found.append(Problem("evaluator.code", "there is no code", "paste a function evaluate(inputs, outputs, trace)"))
    if evaluator.policy is Policy.RESTRICTED and evaluator.language is not Language.PYTHON:
        found.append(
            Problem(
                "evaluator.policy", f"the policy restricted is for Python only, not {evaluator.language}", 'use "none"'
            )
        )
    if evaluator.python is not None and evaluator.language is not Language.PYTHON:
        found.append(
            Problem(
                "evaluator.python", f"only Python evaluators have this field, not {evaluator.language}", "leave it out"
            )
        )
    contract = evaluator.contract
    if contract is not Contract.AUTO and evaluator.language not in (known := dialect_of(contract).languages):
        names = ", ".join(language.title() for language in Language if language in known)
        problem = f"{contract} is for {names} only, not {evaluator.language}"
        found.append(Problem("evaluator.contract", problem, 'use "auto"'))
    return found
