"""Makes the outputs of online runs: calls a model for every row before any row is scored."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..enums import ModelFormat
from ..inference import deep_merge, is_chat, make_inference_request, output_text, requests_log, without_reasoning
from ..resolver_protocols import SecretResolver
from ..structured_output import StructuredOutput, default_structured_output_mode, with_schema, with_system
from ..templates import render_request
from ..values.models import Model
from ..values.params import RunConfigOnline, RunConfigOnlineModel
from .samples import build_offline_sample, sampled
from .values import EvaluationError, EvaluationPhase

_NIM_MAX_TOKENS = 4096
_COLUMNS = ("prompt", "input", "question", "query")
_NO_HTTP = (
    "in a sandbox these modules have no network, and score only outputs that exist already; to have a model write "
    "outputs, run a job with a `target` on the host, or pin the package nemo-platform"
)

Rows = Sequence[dict[str, Any]]


@dataclass(slots=True)
class Sample:
    """The output that a model made for a row. If there is no output, `error` says why."""

    given: dict[str, Any]
    requests: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None


def offline_samples(rows: Rows) -> list[Sample]:
    """Return the samples of rows that already have outputs."""
    return [Sample(build_offline_sample(row)) for row in rows]


async def online_samples(
    rows: Rows,
    *,
    target: Any,
    prompt_template: str | dict[str, Any] | None,
    params: Any,
    secret_resolver: SecretResolver,
    preprocess: Sequence[Any] = (),
    postprocess: Sequence[Any] = (),
    key: str | None = None,
) -> list[Sample]:
    """Call a model or an agent for every row, a few rows at a time. `key` is the metric's name in errors.

    Raises:
      EvaluationError: the model did not answer, and the run does not ignore such failures.
      ValueError: there is no prompt template, and the first row does not show which to use.
    """
    try:
        import httpx
    except ImportError:
        raise NotImplementedError(_NO_HTTP) from None
    if not rows:
        return []
    if getattr(params, "structured_output", None):
        StructuredOutput.model_validate(params.structured_output)
    template = prompt_template if prompt_template is not None else inferred_template(rows[0], target.url)
    secret = target.api_key_secret
    api_key = await secret_resolver.resolve_secret(secret) if secret is not None else None
    async with httpx.AsyncClient(follow_redirects=True) as client:
        asking = _Asking(
            target, template, params, client=client, api_key=api_key, pre=preprocess, post=postprocess, key=key
        )
        return await asking.run(rows)


class _Asking:
    def __init__(
        self,
        target: Any,
        template: str | dict[str, Any],
        params: RunConfigOnline | RunConfigOnlineModel,
        *,
        client: Any,
        api_key: str | None,
        pre: Sequence[Any],
        post: Sequence[Any],
        key: str | None,
    ) -> None:
        self._target = target
        self._template = template
        self._params = params
        self._client = client
        self._api_key = api_key
        self._key = key
        self._pre = pre
        self._post = post

    async def run(self, rows: Rows) -> list[Sample]:
        import asyncio

        places = asyncio.Semaphore(self._params.parallelism)

        async def one(index: int, row: dict[str, Any]) -> Sample:
            async with places:
                return await self._sample(index, row)

        tasks = [asyncio.ensure_future(one(index, row)) for index, row in enumerate(rows)]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()

    async def _sample(self, index: int, row: dict[str, Any]) -> Sample:
        log: list[dict[str, Any]] = []
        requests_log.set(log)
        try:
            response = await self._asked(self._request(index, row))
            for hook in self._post:
                response = hook.postprocess(response, id=str(index))
            response = without_reasoning(response, getattr(self._params, "reasoning", None))
            text = output_text(response)
        except Exception as error:
            cause = " ".join((str(error) or type(error).__name__).split())
            message = f"Row {index} failed inference: {cause}."
            if not self._params.ignore_request_failure:
                advice = f"{message} With ignore_request_failure=True such rows are marked as NaN."
                phase = EvaluationPhase.SAMPLE_GENERATION
                raise EvaluationError(index, advice, phase=phase, metric_key=self._key) from error
            return Sample({"output_text": None, "response": {}, "inference_error": message}, log, message)
        return Sample(sampled(response, {"output_text": text} if text else {}), log)

    def _request(self, index: int, row: dict[str, Any]) -> dict[str, Any]:
        params = self._params
        request = render_request(self._template, {**row, "item": row})
        if isinstance(params, RunConfigOnlineModel):
            request = self._for_model(request, params)
        for hook in self._pre:
            request = hook.preprocess(request, id=str(index))
        return request

    def _for_model(self, request: dict[str, Any], params: RunConfigOnlineModel) -> dict[str, Any]:
        target = self._target
        inference = params.inference.model_dump(mode="json", exclude_none=True) if params.inference else {}
        limits = {"max_tokens", "max_completion_tokens"}
        if target.format == ModelFormat.NVIDIA_NIM and not limits & (set(request) | set(inference)):
            request["max_tokens"] = _NIM_MAX_TOKENS
        if params.system_prompt:
            request = with_system(request, params.system_prompt)
        request = deep_merge(request, inference)
        if params.structured_output:
            request = with_schema(request, params.structured_output, default_structured_output_mode(target.format))
        return request

    async def _asked(self, request: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(self._target, Model):
            from ..agent_inference import make_agent_inference_request

            return await make_agent_inference_request(
                self._target,
                request,
                client=self._client,
                max_retries=self._params.max_retries,
                api_key=self._api_key,
                timeout=self._params.request_timeout,
            )
        return await make_inference_request(
            self._target,
            request,
            self._params.max_retries,
            client=self._client,
            api_key=self._api_key,
            timeout=self._params.request_timeout,
        )


def inferred_template(row: dict[str, Any], url: str) -> dict[str, Any]:
    """Return a prompt template for rows with the columns of this row, and for a model at this address.

    Raises:
      ValueError: no column has the name of a prompt.
    """
    template: dict[str, Any] | None = None
    column = next((name for name in _COLUMNS if name in row), None)
    text = f"{{{{item.{column}}}}}"
    if is_chat(url):
        if "messages" in row:
            template = {"messages": "{{item.messages}}"}
        elif column is not None:
            template = {"messages": [{"role": "user", "content": text}]}
    elif column is not None:
        template = {"prompt": text}
    if template is None:
        raise ValueError(f"give a prompt_template, or rows with one of the columns {', '.join(_COLUMNS)}")
    from logging import getLogger  # imported here, because it takes 10 ms, and scoring does not need it

    getLogger(__name__).warning("there is no prompt_template; it is taken to be %s", json.dumps(template))
    return template
