"""Implements `llm-judge`: a model reads a row and scores it."""

from __future__ import annotations

from typing import Any, Self

from pydantic import PrivateAttr

from ..enums import ModelFormat
from ..inference import ClientInferenceError, InferenceFn, deep_merge, make_inference_request, output_text
from ..resolver_protocols import ModelResolver, SecretResolver
from ..structured_output import (
    StructuredOutputMode,
    default_structured_output_mode,
    detect_mode,
    schema_of_scores,
    with_schema,
    with_system,
)
from ..templates import render_request
from ..values.common import SecretRef, SupportedJobTypes
from ..values.llm_judge import LLMJudge, default_prompt
from ..values.models import Model, ModelRef
from ..values.params import RunConfig, RunConfigOnline
from ..values.protocol import MetricInput, MetricOutput, MetricOutputSpec, MetricResult
from ..values.scores import RubricScore
from .score_parsing import check_schema, parse
from .template_rendering import build_template_context

__all__ = ["LLMJudgeMetric"]

_MAX_TOKENS = 1024
_RETRIES = 3
_NO_MAX_TOKENS = "'max_tokens' is not supported with this model"


class LLMJudgeMetric(LLMJudge):
    """Scores rows with a model. Each score is a number; a rubric score also has the label of the chosen level."""

    job_type: SupportedJobTypes = SupportedJobTypes.ONLINE

    _ask: InferenceFn | None = PrivateAttr(default=None)
    _api_key: str | None = PrivateAttr(default=None)
    _mode: StructuredOutputMode | None = PrivateAttr(default=None)
    _completion_tokens: bool = PrivateAttr(default=False)
    _own_prompt: bool = PrivateAttr(default=False)
    _described: dict[str, Any] = PrivateAttr(default_factory=dict)

    def model_post_init(self, context: Any, /) -> None:
        """Make the JSON schema of the judge's answer from the scores, unless a schema is given.

        Raises:
          ValueError: the given schema has no field for one of the scores.
        """
        self._own_prompt = self.prompt_template is not None
        self.structured_output = self.structured_output or schema_of_scores(self.scores)
        for score in self.scores:
            check_schema(score, self.structured_output)
        if self.structured_output and isinstance(self.model, Model):
            self._mode = default_structured_output_mode(self.model.format)
        self._described = {score.name: score.model_dump(mode="json", exclude={"parser"}) for score in self.scores}
        super().model_post_init(context)

    def output_spec(self) -> list[MetricOutputSpec]:
        """Declare a number for each score, and a label for each rubric."""
        specs = []
        for score in self.scores:
            specs.append(MetricOutputSpec.continuous_score(score.name, description=score.description))
            if isinstance(score, RubricScore):
                description = f"Selected rubric label for {score.name}"
                specs.append(MetricOutputSpec.label(f"{score.name}.label", description=description))
        return specs

    def set_inference_fn(self, inference_fn: InferenceFn) -> None:
        """Replace the function that calls the judge."""
        self._ask = inference_fn

    @property
    def inference_fn(self) -> InferenceFn:
        """The function that calls the judge."""
        return self._ask or make_inference_request

    def apply_evaluation_job_params(self, params: RunConfig) -> None:
        """Store whether a model makes the outputs in this run, or the outputs exist already."""
        self.job_type = SupportedJobTypes.ONLINE if isinstance(params, RunConfigOnline) else SupportedJobTypes.OFFLINE

    def model_refs(self) -> dict[str, ModelRef]:
        """Return `{"model": reference}` if the judge model is only a reference, else an empty dict."""
        return {"model": self.model} if isinstance(self.model, ModelRef) else {}

    async def resolve_models(self, model_resolver: ModelResolver) -> None:
        """Replace the reference to the judge model with the model itself."""
        if isinstance(self.model, ModelRef):
            self.model = await model_resolver.resolve_model(self.model)
        if self.structured_output and isinstance(self.model, Model):
            self._mode = default_structured_output_mode(self.model.format)

    def secrets(self) -> dict[str, SecretRef]:
        """Return the reference to the judge's API key, by its environment variable, or `{}` if the judge has no key."""
        secret = self.model.api_key_secret if isinstance(self.model, Model) else None
        return {} if secret is None else {secret.root.replace("-", "_").replace("/", "_"): secret}

    async def resolve_secrets(self, secret_resolver: SecretResolver) -> None:
        """Look up the judge's API key and store it.

        Raises:
          ValueError: there is no secret with that name.
        """
        secret = self._required_model().api_key_secret
        if secret is not None:
            self._api_key = await secret_resolver.resolve_secret(secret)
            if not self._api_key:
                raise ValueError(f"Missing secret '{secret.root}' for API key authentication with LLM judge.")

    async def preflight(self) -> None:
        """If the judge is an NVIDIA NIM, find out with trial requests how to send a JSON schema for the answer."""
        model = self._required_model()
        if model.format == ModelFormat.NVIDIA_NIM and self.structured_output:
            self._mode = await detect_mode(model, self.inference_fn, api_key=self._api_key)

    async def compute_scores(self, input: MetricInput) -> MetricResult:  # noqa: A002 - the documented name
        """Send a row to the judge, and read the judge's answer."""
        try:
            response = await self._asked(self._request(input))
        except ClientInferenceError as error:
            return self._nothing(error)
        try:
            text = output_text(response, self.reasoning)
            if not isinstance(text, str):
                raise _no_text(response)
        except ValueError as error:
            return self._nothing(error)
        outputs = []
        for score in self.scores:
            value, label = parse(score, text)
            outputs.append(MetricOutput(name=score.name, value=value))
            if label is not None:
                outputs.append(MetricOutput(name=f"{score.name}.label", value=label))
        return MetricResult(outputs=outputs)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        copy = super().__deepcopy__(memo)
        copy._api_key = None  # noqa: SLF001 - a copy of this object, which resolves its key again
        return copy

    def _request(self, row: MetricInput) -> dict[str, Any]:
        model = self._required_model()
        context = build_template_context(row.row.data, row.candidate)
        context["scores"] = self._described
        template = self.prompt_template if self._own_prompt else default_prompt(model, self.job_type)
        request = render_request(template, context)  # type: ignore[arg-type]
        request.setdefault("max_tokens", _MAX_TOKENS)
        if self._completion_tokens:
            request["max_completion_tokens"] = request.pop("max_tokens")
        if self.system_prompt:
            request = with_system(request, self.system_prompt)
        if self.inference is not None:
            request = deep_merge(request, self.inference.model_dump(mode="json", exclude_none=True))
        if self.structured_output and self._mode is not None:
            request = with_schema(request, self.structured_output, self._mode)
        return request

    async def _asked(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            return await self.inference_fn(self._required_model(), request, _RETRIES, api_key=self._api_key)
        except ClientInferenceError as error:
            if "max_tokens" not in request or _NO_MAX_TOKENS not in str(error):
                raise
            self._completion_tokens = True
            request["max_completion_tokens"] = request.pop("max_tokens")
            return await self.inference_fn(self._required_model(), request, _RETRIES, api_key=self._api_key)

    def _nothing(self, error: Exception) -> MetricResult:
        if not self.ignore_request_failure:
            raise error
        outputs = []
        for score in self.scores:
            outputs.append(MetricOutput(name=score.name, value=float("nan")))
            if isinstance(score, RubricScore):
                outputs.append(MetricOutput(name=f"{score.name}.label", value=""))
        return MetricResult(outputs=outputs)

    def _required_model(self) -> Model:
        if isinstance(self.model, Model):
            return self.model
        raise ValueError(
            f"Model reference '{self.model.root}' has not been resolved. "
            "Register it with LocalBackend.model_resolver.register_model() before local execution."
        )


def _no_text(response: dict[str, Any]) -> ValueError:
    message = response["choices"][0].get("message") or {}
    thought = any(message.get(name) for name in ("reasoning", "reasoning_content"))
    advice = (
        " The model only reasoned, and perhaps used all of `max_tokens` for that: raise `max_tokens`."
        if thought
        else ""
    )
    return ValueError(f"LLM judge returned no usable textual content for score parsing.{advice} Response: {response}.")
