"""Reads traces and registered scorers from an MLflow tracking server, and writes feedback to it, with its REST API.

Source: mlflow 3.17.2, store/tracking/rest_store.py and genai/scorers/base.py (`serialized_scorer`).
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import indent
from typing import Any, Final
from urllib.parse import quote

import httpx

from evaluator_host.types.errors import HostUnreachable, InvalidRequest, NotFound
from evaluator_host.types.evaluator import Json, Row

SOURCE: Final = "evaluator-host/{name}@{version}"
_API: Final = "/api/3.0/mlflow"
_OLDER: Final = "/api/2.0/mlflow"
_PAGE: Final = 100
_HEAD: Final = (
    "from __future__ import annotations\n\nfrom typing import *\n\nfrom mlflow.genai.scorers import scorer\n\n\n"
)


@dataclass(frozen=True, slots=True)
class RegisteredScorer:
    """A scorer that is registered for an experiment. `code` is the source that MLflow stored, or empty."""

    name: str
    version: str
    code: str

    @property
    def source_id(self) -> str:
        """The `source_id` of this scorer's feedback. A trace that has feedback with this id has already been scored."""
        return SOURCE.format(name=self.name, version=self.version)


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace: the row made from its root span and people's expectations, and the source ids of its feedback."""

    trace_id: str
    row: Row
    sources: frozenset[str]


class TrackingServer:
    """An MLflow tracking server.

    Args:
      url: URL of the server, as in `MLFLOW_TRACKING_URI`.
      token: Token that is sent as `Authorization: Bearer`; None for a server without tokens.
    """

    def __init__(self, url: str, token: str | None) -> None:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._client = httpx.Client(base_url=url.rstrip("/"), headers=headers, timeout=60)

    def experiment_id(self, name: str) -> str:
        """Return the id of an experiment, by name or id.

        Raises:
          NotFound: there is no such experiment.
        """
        found = self._call("GET", f"{_OLDER}/experiments/get-by-name", params={"experiment_name": name}, missing=True)
        if found is None and name.isdecimal():
            found = self._call("GET", f"{_OLDER}/experiments/get", params={"experiment_id": name}, missing=True)
        if found is None:
            raise NotFound(f"MLflow has no experiment {name[:80]!r}")
        return str(found["experiment"]["experiment_id"])

    def scorers(self, experiment_id: str) -> list[RegisteredScorer]:
        """Return the registered scorers of an experiment, at their newest versions."""
        found = self._call("GET", f"{_API}/scorers/list", params={"experiment_id": experiment_id}) or {}
        return [_registered(one) for one in found.get("scorers", [])]

    def traces(self, experiment_id: str, limit: int) -> Iterator[Trace]:
        """Yield the newest traces of an experiment, at most `limit`."""
        where = [{"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": experiment_id}}]
        token = None
        while limit > 0:
            asked = {"locations": where, "max_results": min(limit, _PAGE), "order_by": ["timestamp_ms DESC"]}
            page = self._call(
                "POST", f"{_API}/traces/search", body={**asked, **({"page_token": token} if token else {})}
            )
            infos, token = (page or {}).get("traces", []), (page or {}).get("next_page_token")
            for info in infos:
                yield self._trace(info)
            limit -= len(infos)
            if not token or not infos:
                return

    def log_feedback(self, trace_id: str, scorer: RegisteredScorer, feedback: dict[str, Json]) -> None:
        """Write a piece of feedback, `{"name", "value", "rationale", "error", "metadata"}`, to a trace."""
        told: dict[str, Json] = {"value": feedback.get("value")}
        if (error := feedback.get("error")) is not None:
            told = {"error": {"error_code": "EVALUATOR_ERROR", "error_message": str(error)[:2000]}}
        assessment = {
            "assessment_name": feedback.get("name") or scorer.name,
            "trace_id": trace_id,
            "source": {"source_type": "CODE", "source_id": scorer.source_id},
            "feedback": told,
            "valid": True,
        }
        if feedback.get("rationale"):
            assessment["rationale"] = str(feedback["rationale"])
        if feedback.get("metadata"):
            assessment["metadata"] = {name: str(value) for name, value in feedback["metadata"].items()}
        path = f"{_API}/traces/{quote(trace_id, safe='')}/assessments"
        self._call("POST", path, body={"assessment": assessment})

    def _trace(self, info: dict[str, Any]) -> Trace:
        trace_id = info["trace_id"]
        whole = self._call("GET", f"{_API}/traces/get", params={"trace_id": trace_id}) or {}
        spans = whole.get("trace", {}).get("spans", [])
        root: dict[str, Any] = next((span for span in spans if not span.get("parent_span_id")), {})
        values = {one["key"]: _plain(one.get("value", {})) for one in root.get("attributes", [])}
        assessments = whole.get("trace", {}).get("trace_info", info).get("assessments", [])
        # MLflow marks an expectation as invalid once a later one has replaced it
        valid = [one for one in assessments if "expectation" in one and one.get("valid") is not False]
        expected = {one["assessment_name"]: _expected(one["expectation"]) for one in valid}
        variables = {
            "inputs": _decoded(values.get("mlflow.spanInputs")),
            "outputs": _decoded(values.get("mlflow.spanOutputs")),
            "expectations": expected,
        }
        sources = {one.get("source", {}).get("source_id") for one in assessments if "feedback" in one}
        return Trace(trace_id, Row(variables=variables), frozenset(sources))

    def _call(
        self, method: str, path: str, *, params: Any = None, body: Any = None, missing: bool = False
    ) -> dict[str, Any] | None:
        try:
            answer = self._client.request(method, path, params=params, json=body)
        except httpx.HTTPError as error:
            raise HostUnreachable(f"no MLflow server answers at {self._client.base_url}: {error}") from error
        if answer.status_code == 404 and missing:
            return None
        if answer.status_code >= 400:
            raise InvalidRequest(f"MLflow refuses {method} {path}: {answer.status_code} {answer.text[:300]}")
        try:
            found = answer.json()
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise InvalidRequest(
                f"the server at {self._client.base_url} is not a tracking server of MLflow: {answer.text[:100]!r}; "
                "give the address of MLflow itself, as in MLFLOW_TRACKING_URI"
            )
        return found


def _registered(one: dict[str, Any]) -> RegisteredScorer:
    kept = json.loads(one["serialized_scorer"])
    name, version = str(one["scorer_name"]), str(one["scorer_version"])
    source, signature = kept.get("call_source"), kept.get("call_signature")
    if not source or not signature:
        return RegisteredScorer(name, version, "")
    function = kept.get("original_func_name") or name
    code = f"{_HEAD}@scorer(name={name!r})\ndef {function}{signature}:\n{indent(source, '    ')}\n"
    return RegisteredScorer(name, version, code)


def _plain(value: dict[str, Any]) -> Json:
    """Convert an attribute in OTLP's JSON to a plain value."""
    if "kvlist_value" in value:
        return {one["key"]: _plain(one.get("value", {})) for one in value["kvlist_value"].get("values", [])}
    if "array_value" in value:
        return [_plain(one) for one in value["array_value"].get("values", [])]
    return next(iter(value.values()), None)


def _expected(expectation: dict[str, Any]) -> Json:
    """Return the value of an expectation; MLflow stores lists and objects as JSON in a string."""
    stored = expectation.get("serialized_value")
    return _decoded(stored.get("value")) if isinstance(stored, dict) else expectation.get("value")


def _decoded(text: Any) -> Json:
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
