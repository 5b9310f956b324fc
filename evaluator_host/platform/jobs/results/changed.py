"""Finds differences between two jobs that may explain why their results differ."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from evaluator_host.platform.jobs.records import Job, JobEvaluator
from evaluator_host.platform.jobs.spec import evaluator_of, spec_from_json
from evaluator_host.types.evaluator import Evaluator
from evaluator_host.types.jobs import Failures
from evaluator_host.types.json_values import encode_json
from evaluator_host.types.results import Changed

_SHOWN: Final = 200  # maximum number of characters to show of the value in each job
_SETTINGS: Final = ("language", "contract", "settings", "threshold", "policy", "python", "judge", "network", "secrets")
_FAILURES: Final = {Failures.EXCLUDE: "left out of the mean", Failures.ZERO: "count as 0"}


def changes_of_evaluators(before: JobEvaluator, after: JobEvaluator) -> tuple[Changed, ...]:
    """Return the differences between an evaluator in a job and the same evaluator in a later job."""
    old, new = evaluator_of(before), evaluator_of(after)
    digests = _digest(old), _digest(new)
    named = before.label, after.label
    found = (
        None if digests[0] == digests[1] else Changed("code", *(digests if named[0] == named[1] else named)),
        _changed("packages", ", ".join(old.packages), ", ".join(new.packages)),
        _changed("model", ", ".join(old.models), ", ".join(new.models)),
        _changed("settings", *_fields(_settings(old), _settings(new))),
        _changed("limits", *_fields(asdict(old.limits), asdict(new.limits))),
    )
    return tuple(change for change in found if change is not None)


def changes_of_jobs(before: tuple[Job, str], after: tuple[Job, str]) -> tuple[Changed, ...]:
    """Return the differences between two jobs, except the differences between their evaluators.

    Each job is given with the name of its data set.
    """
    (one, data), (other, later_data) = before, after
    old, new = spec_from_json(one.request), spec_from_json(other.request)
    models = [{} if spec.target is None else asdict(spec.target) for spec in (old, new)]
    rows = [{"limit": spec.config.limit_samples, "shard": spec.config.shard} for spec in (old, new)]
    failures = [_FAILURES[spec.config.failures] for spec in (old, new)]
    found = (
        _changed("mapping", *_fields(old.mapping, new.mapping)),
        _changed("data", data, later_data) if one.dataset_id != other.dataset_id else None,
        _changed("model", *_fields(*models)),
        _changed("rows", *_fields(*rows)),
        _changed("failed rows", *failures),
    )
    return tuple(change for change in found if change is not None)


def _settings(one: Evaluator) -> dict[str, Any]:
    every = asdict(one)
    return {name: every[name] for name in _SETTINGS}


def _digest(one: Evaluator) -> str:
    return hashlib.sha256(encode_json([one.code, one.files, one.path])).hexdigest()[:12]


def _fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, str]:
    """Return the fields in which two objects differ, as one string for each object, such as `outputs=answer`."""
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return _text(before, names), _text(after, names)


def _text(side: Mapping[str, Any], names: list[str]) -> str:
    given = {name: side[name] for name in names if side.get(name) not in (None, "", {}, ())}
    return ", ".join(f"{name}={_value(value)}" for name, value in given.items())


def _value(value: Any) -> str:
    return value if isinstance(value, str) else encode_json(value).decode()


def _changed(what: str, before: str, after: str) -> Changed | None:
    if before == after:
        return None
    return Changed(what, before[:_SHOWN] or "none", after[:_SHOWN] or "none")
