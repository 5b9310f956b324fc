"""Pydantic models of the job requests that NeMo's client sends. Unknown fields are refused by name."""

from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, FailFast, Field, model_validator

from evaluator_host.platform.http.bodies import Body, Few, WholeNumber

_STRICT: Final = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())
_FIELDS: Final = ("input", "output", "context", "reference", "trajectory", "messages", "tool_calls", "tools")
_Path = Annotated[str, Field(min_length=1, max_length=1000, pattern=r"^[^\[\]]*$")]
_ABSENT: Final = object()


class OutputSpecIn(Body):
    """The declaration of one output of a metric."""

    model_config = _STRICT

    name: str = Field(min_length=1, max_length=200)
    description: str | None = None
    value_json_schema: dict[str, Any] = Field(default_factory=dict)


class MetadataIn(BaseModel):
    """The description of a metric."""

    model_config = ConfigDict(extra="allow", frozen=True)

    description: str | None = None
    labels: Annotated[dict[str, str], Few] = Field(default_factory=dict)


class CloudpickleIn(Body):
    """A metric pickled with cloudpickle, as base64."""

    model_config = _STRICT

    kind: Literal["cloudpickle"]
    python_version: str = Field(max_length=40)
    cloudpickle_version: str = Field(max_length=40)
    pickle_protocol: WholeNumber
    blob: str = Field(min_length=1)
    digest: str | None = None


class InlineIn(Body):
    """A built-in metric's configuration."""

    model_config = _STRICT

    kind: Literal["inline"]
    metric: dict[str, Any]
    digest: str | None = None


class BundleIn(Body):
    """A metric with its code or its configuration."""

    model_config = ConfigDict(
        **_STRICT,
        json_schema_extra={
            "examples": [
                {
                    "metric_type": "exact-match",
                    "outputs": [{"name": "exact-match", "value_json_schema": {"type": "number"}}],
                    "payload": {
                        "kind": "inline",
                        "metric": {"type": "exact-match", "reference": "{{item.expected}}"},
                    },
                }
            ]
        },
    )

    bundle_kind: Literal["metric-bundle"] = "metric-bundle"
    bundle_format_version: Literal["v1"] = "v1"
    metric_type: str = Field(min_length=1, max_length=200)
    metadata: MetadataIn = MetadataIn()
    outputs: Annotated[list[OutputSpecIn], FailFast()] = Field(min_length=1, max_length=1000)
    secrets: Annotated[dict[str, str], Few] = Field(default_factory=dict)
    payload: Annotated[CloudpickleIn | InlineIn, Field(discriminator="kind")]


class FieldMappingIn(Body):
    """The column for each of NeMo's fields. `a.b` names field `b` of the object in column `a`."""

    model_config = _STRICT

    input: _Path | None = None
    output: _Path | None = None
    context: _Path | None = None
    reference: _Path | None = None
    trajectory: _Path | None = None
    messages: _Path | None = None
    tool_calls: _Path | None = None
    tools: _Path | None = None
    custom: Annotated[dict[str, _Path], Few] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _own_names(self) -> Self:
        if taken := sorted(set(self.custom) & set(_FIELDS)):
            raise ValueError(f"custom binding keys overlap with reserved evaluator fields: {taken}")
        return self

    def applied_to(self, record: dict[str, Any]) -> dict[str, Any]:
        """Copy a record and add the mapped fields, except those whose column is missing."""
        known = {name: getattr(self, name) for name in _FIELDS if getattr(self, name) is not None}
        found = ((name, _at(record, path)) for name, path in {**known, **self.custom}.items())
        return {**record, **{name: value for name, value in found if value is not _ABSENT}}


class ReasoningIn(BaseModel):
    """Options for the reasoning part of a model's response."""

    model_config = ConfigDict(extra="allow", frozen=True)

    end_token: str | None = None
    include_if_not_finished: bool | None = None
    effort: str | None = None


class ParamsIn(Body):
    """Parameters of a run: parallelism, and inference settings of the model."""

    model_config = _STRICT

    parallelism: int = Field(8, ge=1, le=1024)
    limit_samples: WholeNumber | None = Field(None, ge=1)
    ignore_request_failure: bool = False
    request_timeout: int | None = Field(None, ge=1, le=3600)
    max_retries: int = Field(3, ge=0, le=20)
    inference: dict[str, Any] | None = None
    system_prompt: str | None = None
    reasoning: ReasoningIn | None = None
    structured_output: dict[str, Any] | None = None


class NemoModelIn(Body):
    """A model to call."""

    model_config = _STRICT

    url: str = Field(min_length=1, max_length=2000)
    name: str = Field(min_length=1, max_length=200)
    api_key_secret: str | None = Field(None, max_length=300)
    format: Literal["nim", "openai", "llama_stack"] = "nim"
    host_url: str | None = None
    default_headers: Annotated[dict[str, str], Few] | None = None


class GenericAgentIn(Body):
    """An agent that receives JSON over HTTP."""

    model_config = _STRICT

    url: str = Field(min_length=1, max_length=2000)
    name: str = Field(min_length=1, max_length=200)
    api_key_secret: str | None = Field(None, max_length=300)
    format: Literal["generic"]
    body: dict[str, Any]
    response_path: str = Field(min_length=1, max_length=1000)
    trajectory_path: str | None = Field(None, max_length=1000)
    stream: bool = False
    response_aggregation: Literal["last", "concat"] = "last"


class NatConfigIn(Body):
    """The request to an agent of NeMo Agent Toolkit."""

    model_config = _STRICT

    endpoint: str = "/generate/full"
    request_mode: Literal["input_message", "passthrough"] = "input_message"
    query_params: Annotated[dict[str, str], Few] = Field(default_factory=lambda: {"filter_steps": "none"})
    response_path: str = Field("$.value", min_length=1, max_length=1000)
    response_aggregation: Literal["last", "concat"] = "concat"


class NatAgentIn(Body):
    """An agent of NeMo Agent Toolkit."""

    model_config = _STRICT

    url: str = Field(min_length=1, max_length=2000)
    name: str = Field(min_length=1, max_length=200)
    api_key_secret: str | None = Field(None, max_length=300)
    format: Literal["nemo_agent_toolkit"]
    nat: NatConfigIn | None = None


AGENTS: Final = ("generic", "nemo_agent_toolkit")


class SpecIn(Body):
    """The specification of a job."""

    model_config = _STRICT

    metrics: Annotated[list[BundleIn | str], FailFast()] = Field(min_length=1, max_length=100)
    dataset: Annotated[list[dict[str, Any]], Field(fail_fast=True)] | str = Field(
        description="Rows, or a reference to a file with rows: workspace/fileset#file."
    )
    params: ParamsIn | None = None
    target: NemoModelIn | GenericAgentIn | NatAgentIn | str | None = Field(
        None, description="A model, its reference workspace/name, or an agent."
    )
    prompt_template: str | dict[str, Any] | None = None
    field_mapping: FieldMappingIn | None = None


class NemoJobIn(Body):
    """Body of a request to create a job."""

    model_config = ConfigDict(
        **_STRICT,
        json_schema_extra={
            "examples": [
                {
                    "spec": {
                        "metrics": BundleIn.model_config["json_schema_extra"]["examples"],  # type: ignore[index]
                        "dataset": [{"expected": "Paris", "answer": "Paris"}],
                        "field_mapping": {"output": "answer"},
                    }
                }
            ]
        },
    )

    name: str | None = Field(None, max_length=255)
    description: str | None = None
    project: str | None = None
    spec: SpecIn
    ownership: dict[str, Any] | None = None
    custom_fields: dict[str, Any] | None = None


class OlderRowsIn(Body):
    """Rows inside a job request of an older release of NeMo's client."""

    model_config = _STRICT

    rows: Annotated[list[dict[str, Any]], FailFast()] = Field(min_length=1)


class OlderSpecIn(Body):
    """Specification of a job of one metric, as older releases of NeMo's client send it."""

    model_config = _STRICT

    metric: dict[str, Any] | str
    dataset: OlderRowsIn | str = Field(description="Rows, or a reference to a file with rows: workspace/fileset#file.")
    params: dict[str, Any] | None = None
    field_mapping: dict[str, Any] | None = None
    model: dict[str, Any] | str | None = Field(None, description="A model, or workspace/name of one.")
    prompt_template: str | dict[str, Any] | None = None


class OlderJobIn(Body):
    """Body of a request to create a job, as older releases of NeMo's client send it."""

    model_config = ConfigDict(
        **_STRICT,
        json_schema_extra={
            "examples": [
                {
                    "spec": {
                        "metric": {"type": "exact-match", "reference": "{{item.expected}}"},
                        "dataset": {"rows": [{"expected": "Paris", "output": "Paris"}]},
                    }
                }
            ]
        },
    )

    name: str | None = Field(None, max_length=255)
    description: str | None = None
    project: str | None = None
    spec: OlderSpecIn
    ownership: dict[str, Any] | None = None
    custom_fields: dict[str, Any] | None = None


class FewRowsIn(Body):
    """Rows to score at once."""

    model_config = _STRICT

    rows: Annotated[list[dict[str, Any]], FailFast()] = Field(min_length=1, max_length=10)


class NemoEvaluateIn(Body):
    """Body of a request to score a few rows at once."""

    model_config = ConfigDict(
        **_STRICT,
        json_schema_extra={
            "examples": [
                {
                    "metric": {"type": "exact-match", "reference": "{{item.expected}}", "candidate": "{{item.output}}"},
                    "dataset": {"rows": [{"expected": "Paris", "output": "Paris"}]},
                }
            ]
        },
    )

    metric: dict[str, Any] | str
    dataset: FewRowsIn


def _at(value: Any, path: str) -> Any:
    for part in path.split("."):
        if not isinstance(value, dict) or part not in value:
            return _ABSENT
        value = value[part]
    return value
