"""Converts a model of NeMo's client to the model that a job of this host calls: its address and prompts."""

from typing import Any, Final

from evaluator_host.dialects.nemo.host.entities import split_ref
from evaluator_host.dialects.nemo.host.models import Models
from evaluator_host.dialects.nemo.host.spec import ModelIn, ParamsIn, SpecIn
from evaluator_host.model.errors import InvalidRequest, Problem
from evaluator_host.models.judges import ModelPlace
from evaluator_host.schemas.jobs import Target
from evaluator_host.sdk.execution.online import inferred_template
from evaluator_host.sdk.structured_output import default_structured_output_mode, with_schema

_TIMEOUT_S: Final = 60.0
_NIM_TOKENS: Final = 4096  # the client's own default for a NIM


async def target_of(models: Models, workspace_id: str, namespace: str, spec: SpecIn) -> Target | None:
    """Return the model that a job calls to produce outputs; None when the rows already have outputs.

    Raises:
      InvalidRequest: the model or its prompt cannot be taken.
      NotFound: there is no such model.
    """
    if spec.target is None:
        if spec.prompt_template is not None:
            raise _refused("prompt_template", "there is no target to be asked", "give target, a model, as well")
        return None
    params = spec.params or ParamsIn()
    if params.reasoning is not None and params.reasoning.end_token is not None:
        raise _refused("params.reasoning.end_token", "answers are scored as they come, reasoning included", None)
    endpoint = await _endpoint(models, workspace_id, namespace, spec.target)
    nim = isinstance(spec.target, str) or spec.target.format == "nim"
    prompt, messages, more = _prompt(_template(spec))
    system = params.system_prompt
    if prompt is not None and system is not None:  # as NeMo does, where there are no messages
        prompt, system = f"{system} {prompt}", None
    return Target(
        base_url=endpoint.base_url,
        model=endpoint.model,
        api_key=endpoint.secret,
        prompt_template=prompt,
        messages=messages,
        system=system,
        inference={**_inference(params, nim=nim), **more},
        concurrency=min(params.parallelism, 256),
        timeout_s=float(params.request_timeout or _TIMEOUT_S),
        retries=params.max_retries,
        completion=prompt is not None,
    )


async def _endpoint(models: Models, workspace_id: str, namespace: str, target: ModelIn | str) -> ModelPlace:
    if isinstance(target, str):
        place, name = split_ref(target, namespace=namespace, what="model")
        return await models.resolve(workspace_id, place, name)
    reference = models.reference_of(target.url)
    if reference is not None:
        return await models.resolve(workspace_id, *reference)
    if target.default_headers:
        raise _refused("target.default_headers", "headers of one's own are not sent", "keep a key as a secret")
    url = target.url.rstrip("/").removesuffix("/chat/completions").removesuffix("/completions")
    secret = target.api_key_secret
    return ModelPlace(url, target.name, secret.rpartition("/")[2] if secret else None)


def _template(spec: SpecIn) -> str | dict[str, Any] | None:
    """Return the job's prompt template; without one, that of the first row that the job brings along."""
    if spec.prompt_template is not None or isinstance(spec.dataset, str) or not spec.dataset:
        return spec.prompt_template
    url = spec.target.url if isinstance(spec.target, ModelIn) else ""
    first = spec.dataset[0] if spec.field_mapping is None else spec.field_mapping.applied_to(spec.dataset[0])
    try:
        template = inferred_template(first, url)
    except ValueError:
        return None
    return str(template["prompt"]) if "prompt" in template else template


def _prompt(template: str | dict[str, Any] | None) -> tuple[str | None, tuple[dict[str, Any], ...], dict[str, Any]]:
    """Return the one message or the messages, and what else the template sends."""
    if isinstance(template, str):
        return template, (), {}
    if template is None or not isinstance(template.get("messages"), list) or not template["messages"]:
        hint = 'write a text, "{{item.question}}", or {"messages": [{"role": "user", "content": "{{item.question}}"}]}'
        raise _refused("prompt_template", "there is no prompt for the model", hint)
    messages = tuple(template["messages"])
    if not all(isinstance(one, dict) for one in messages):
        raise _refused("prompt_template.messages", "a message is an object with role and content", None)
    return None, messages, {key: value for key, value in template.items() if key != "messages"}


def _inference(params: ParamsIn, *, nim: bool) -> dict[str, Any]:
    sent = {key: value for key, value in (params.inference or {}).items() if value is not None}
    if nim and not {"max_tokens", "max_completion_tokens"} & set(sent):
        sent["max_tokens"] = _NIM_TOKENS
    if params.reasoning is not None and params.reasoning.effort is not None:
        sent["reasoning_effort"] = params.reasoning.effort
    if params.structured_output is not None:
        if not isinstance(params.structured_output.get("schema"), dict):
            raise _refused("params.structured_output", "it has no schema", 'write {"schema": {"type": "object", …}}')
        mode = default_structured_output_mode("nim" if nim else "openai")
        sent |= with_schema({}, params.structured_output, mode)
        sent |= sent.pop("extra_body", {})
    return sent


def _refused(field: str, message: str, hint: str | None) -> InvalidRequest:
    return InvalidRequest(f"the job cannot be taken: {message}", problems=(Problem(f"spec.{field}", message, hint),))
