"""Checks metric bundles (metrics as clients send them), and makes evaluators that unpack the bundles inside a sandbox.

The host reads the fields around a bundle's pickled content, but never unpickles that content.
"""

import base64
import binascii
import hashlib
import json
import re
from collections import Counter
from typing import Any, Final

from evaluator_host.engine.config.settings import RUNTIMES_DIR
from evaluator_host.engine.packages.pip.resolve import shipped_pins
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Contract, Evaluator, EvaluatorSettings, Limits
from evaluator_host.vendors.nemo.built_in import built_in_code
from evaluator_host.vendors.nemo.dialect import SDK

BLOB_BYTES: Final = 10 << 20
_PYTHON: Final = re.compile(r"(3\.\d{1,2})(?:\.\d{1,3})?\S{0,20}")
_PROTOCOLS: Final = range(6)
_NAME: Final = re.compile(r"[^A-Za-z0-9._-]")  # characters that end the package's name in a pin
_LOCK: Final = RUNTIMES_DIR / "python" / SDK.lock
_PREFIX: Final = "evaluator_host."
_METRICS_OF: Final = {
    b"metrics.bleu": "BLEUMetric",
    b"metrics.rouge": "ROUGEMetric",
}  # metric classes that need packages, by module
_OPENER: Final = '''import base64

import cloudpickle
import nemo_evaluator_sdk  # {needs}


class BundleError(RuntimeError):
    """The bundle cannot be opened, or its metric is not the one that the bundle describes."""


def _advice(error):
    if isinstance(error, ModuleNotFoundError):
        return '; name its package, pinned, in the metric: labels = {{"evaluator_host.packages": "name==1.2.3"}}'
    return ""


class Bundled:
    def __new__(cls, blob, metric_type, outputs):
        try:
            metric = cloudpickle.loads(base64.b64decode(blob))
        except Exception as error:
            said = f"{{type(error).__name__}}: {{error}}{{_advice(error)}}"
            raise BundleError(f"the bundle cannot be opened: {{said}}") from error
        for name in ("type", "output_spec", "compute_scores"):
            if not hasattr(metric, name):
                kind = type(metric).__name__
                raise BundleError(f"the bundle holds a {{kind}}, which has no {{name}}, so it is not a metric")
        named = getattr(metric.type, "value", metric.type)
        if named != metric_type:
            raise BundleError(f"the bundle declares the metric {{metric_type!r}}, but holds {{named!r}}")
        declared = [spec.name for spec in metric.output_spec()]
        if declared != outputs:
            raise BundleError(f"the bundle declares the outputs {{outputs}}, but its metric has {{declared}}")
        return metric

    def output_spec(self):
        """Mark this class as a metric for the runner, which looks for this method."""

    def compute_scores(self):
        """Mark this class as a metric, like `output_spec`."""
'''


def checked(bundle: dict[str, Any], *, field: str) -> dict[str, Any]:
    """Check the fields of a metric bundle, and return it with the digest of its payload.

    Raises:
      InvalidRequest: a field is missing or not valid.
    """
    names = Counter(output["name"] for output in bundle["outputs"])
    if twice := sorted(name for name, count in names.items() if count > 1):
        raise _refused(f"{field}.outputs", f"several outputs have the same name: {twice}")
    payload = bundle["payload"]
    if payload["kind"] == "inline":
        built_in_code(payload["metric"], field=f"{field}.payload.metric")
        canonical = json.dumps(payload["metric"], sort_keys=True, separators=(",", ":")).encode()
        return {**bundle, "payload": {**payload, "digest": hashlib.sha256(canonical).hexdigest()}}
    blob = _blob(payload["blob"], f"{field}.payload.blob")
    digest = hashlib.sha256(blob).hexdigest()
    if payload.get("digest") not in (None, digest):
        raise _refused(
            f"{field}.payload.digest", "the digest is not the blob's SHA-256: the bundle was damaged in transit"
        )
    if _PYTHON.fullmatch(payload["python_version"]) is None:
        raise _refused(f"{field}.payload.python_version", "must be a version of Python 3")
    if payload["pickle_protocol"] not in _PROTOCOLS:
        raise _refused(f"{field}.payload.pickle_protocol", "must be a pickle protocol from 0 to 5")
    return {**bundle, "payload": {**payload, "digest": digest}}


def evaluator_of(bundle: dict[str, Any], *, field: str) -> Evaluator:
    """Return the evaluator that runs a checked bundle.

    Labels of the metric may set `evaluator_host.packages` (exact pins, separated by spaces),
    `evaluator_host.memory_mb` and `evaluator_host.timeout_s`.

    Raises:
      InvalidRequest: the built-in metric does not run here, or a label has a wrong value.
    """
    payload = bundle["payload"]
    labels = (bundle.get("metadata") or {}).get("labels") or {}
    packages, limits = _packages(labels), _limits(labels, field)
    if payload["kind"] == "inline":
        code = built_in_code(payload["metric"], field=f"{field}.payload.metric")
        return Evaluator(code, contract=Contract("nemo"), packages=packages, limits=limits)
    blob = _blob(payload["blob"], f"{field}.payload.blob")
    needs = ", ".join(name for module, name in _METRICS_OF.items() if module in blob) or "its modules keep their paths"
    config = {
        "blob": base64.b64encode(blob).decode(),
        "metric_type": bundle["metric_type"],
        "outputs": [output["name"] for output in bundle["outputs"]],
    }
    return Evaluator(
        _OPENER.format(needs=needs),
        python=python_of(bundle),
        contract=Contract("nemo"),
        packages=packages,
        settings=EvaluatorSettings(entry="Bundled", config=config),
        limits=limits,
    )


def python_of(bundle: dict[str, Any]) -> str | None:
    """Return the Python version that a checked bundle needs, such as `3.13`, or None if any version works."""
    found = _PYTHON.fullmatch(str(bundle["payload"].get("python_version", "")))
    return found[1] if found is not None else None


def numeric_outputs(bundle: dict[str, Any]) -> list[str]:
    """Return the names of a bundle's outputs that are declared as numbers."""
    kinds = ("number", "integer", "boolean")
    return [one["name"] for one in bundle["outputs"] if one.get("value_json_schema", {}).get("type") in kinds]


def _blob(text: str, field: str) -> bytes:
    if len(text) > BLOB_BYTES * 4 // 3 + 4:
        raise _refused(field, f"the bundle is over the limit of {BLOB_BYTES >> 20} MiB")
    plain = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        blob = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise _refused(field, "must be base64") from error
    if not 0 < len(blob) <= BLOB_BYTES:
        raise _refused(field, f"the bundle has {len(blob)} bytes; it must have 1 to {BLOB_BYTES}")
    return blob


def _packages(labels: dict[str, str]) -> tuple[str, ...]:
    """Return a metric's exact package versions; add cloudpickle, which NVIDIA's package needs but does not install."""
    packages = tuple(labels.get(f"{_PREFIX}packages", "").split())
    names = {_NAME.split(package, maxsplit=1)[0].lower().replace("_", "-") for package in packages}
    if "nemo-platform" not in names or "cloudpickle" in names:
        return packages
    return (*packages, *(pin.text for pin in shipped_pins(_LOCK, frozenset({"cloudpickle"}))))


def _limits(labels: dict[str, str], field: str) -> Limits:
    try:
        memory_mb = int(labels.get(f"{_PREFIX}memory_mb", Limits().memory_mb))
        timeout_s = float(labels.get(f"{_PREFIX}timeout_s", Limits().timeout_s))
    except ValueError as error:
        raise _refused(f"{field}.metadata.labels", f"memory_mb and timeout_s must be numbers: {error}") from error
    if not (memory_mb >= 32 and timeout_s > 0):
        raise _refused(f"{field}.metadata.labels", "memory_mb must be 32 or more, and timeout_s more than 0")
    return Limits(memory_mb=memory_mb, timeout_s=timeout_s)


def _refused(field: str, message: str) -> InvalidRequest:
    return InvalidRequest.of(field, message, what="metric")
