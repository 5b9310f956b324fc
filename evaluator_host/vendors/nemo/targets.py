"""Converts a model or agent from NeMo's client to the target of a job: the address to call, and the prompt."""

from typing import Any, Final

from evaluator_host.platform.models.judges import ModelPlace
from evaluator_host.sdk.agent_inference import call_of
from evaluator_host.sdk.execution.online import inferred_template
from evaluator_host.sdk.structured_output import default_structured_output_mode, with_schema
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.jobs import Target
from evaluator_host.vendors.nemo.entities import split_ref
from evaluator_host.vendors.nemo.models import NemoModels
from evaluator_host.vendors.nemo.spec import GenericAgentIn, NatAgentIn, NemoModelIn, ParamsIn, SpecIn

_TIMEOUT_S: Final = 60.0
_AGENT_S: Final = 120.0  # time limit, in seconds, that NeMo's client sets for an agent
_NIM_TOKENS: Final = 4096  # token limit that NeMo's client sets for an NVIDIA NIM


async def target_of(models: NemoModels, workspace_id: str, namespace: str, spec: SpecIn) -> Target | None:
    """Return the model that a job calls to produce outputs, or None when the rows already have outputs.

    Raises:
      InvalidRequest: the model or its prompt is not valid or not supported.
      NotFound: there is no such model.
    """
    if spec.target is None:
        if spec.prompt_template is not None:
            raise _refused(
                "prompt_template", "there is a prompt, but no model to send it to", "give the model as the target"
            )
        return None
    if isinstance(spec.target, GenericAgentIn | NatAgentIn):
        return agent_target(spec.target, spec.params or ParamsIn(), spec.prompt_template)
    endpoint = await _endpoint(models, workspace_id, namespace, spec.target)
    nim = isinstance(spec.target, str) or spec.target.format == "nim"
    return make_target(endpoint, spec.params or ParamsIn(), _template(spec), nim=nim)


def make_target(endpoint: ModelPlace, params: ParamsIn, template: str | dict[str, Any] | None, *, nim: bool) -> Target:
    """Return the target of a job that calls a model in the same way as NeMo's own runs.

    Args:
      endpoint: URL, name and secret of the model.
      params: Parameters of the run.
      template: The prompt: a string, or an object with `messages`.
      nim: Whether the model is an NVIDIA NIM; a NIM gets the JSON schema in a different field, and a limit of tokens.

    Raises:
      InvalidRequest: the prompt or a parameter is not valid or not supported.
    """
    if params.reasoning is not None and params.reasoning.end_token is not None:
        raise _refused(
            "params.reasoning.end_token",
            "this host does not remove the reasoning from answers before it scores them",
            "leave it out",
        )
    prompt, messages, more = _prompt(template)
    system = params.system_prompt
    # like NeMo, put the system prompt in front of a template without messages
    if prompt is not None and system is not None:
        prompt, system = f"{system} {prompt}", None
    return Target(
        base_url=endpoint.base_url,
        model=endpoint.model,
        api_key=endpoint.secret,
        prompt_template=prompt,
        messages=messages,
        system=system,
        inference=_inference(params, more, nim=nim),
        concurrency=min(params.parallelism, 256),
        timeout_s=float(params.request_timeout or _TIMEOUT_S),
        retries=params.max_retries,
        completion=prompt is not None,
    )


def agent_target(agent: Any, params: ParamsIn, template: str | dict[str, Any] | None) -> Target:
    """Return the target of a job that calls an agent.

    Raises:
      InvalidRequest: there is no prompt.
    """
    if template is None:
        raise _refused("prompt_template", "an agent needs a prompt", 'write {"prompt": "{{item.question}}"}')
    if isinstance(template, dict) and "messages" not in template and isinstance(template.get("prompt"), str):
        others = {name: value for name, value in template.items() if name != "prompt"}
        prompt, messages, more = (*_prompt(template["prompt"])[:2], others)
    else:
        prompt, messages, more = _prompt(template)
    call = call_of(agent)
    secret = agent.api_key_secret
    return Target(
        base_url=call.pop("url"),
        model=agent.name,
        api_key=None if secret is None else str(getattr(secret, "root", secret)).rpartition("/")[2],
        prompt_template=prompt,
        messages=messages,
        inference=more,
        concurrency=min(params.parallelism, 256),
        timeout_s=float(params.request_timeout or _AGENT_S),
        retries=params.max_retries,
        completion=prompt is not None,
        agent={"response_path": call.pop("path"), **call},
    )


async def _endpoint(models: NemoModels, workspace_id: str, namespace: str, target: NemoModelIn | str) -> ModelPlace:
    if isinstance(target, str):
        place, name = split_ref(target, namespace=namespace, what="model")
        return await models.resolve(workspace_id, place, name)
    reference = models.reference_of(target.url)
    if reference is not None:
        return await models.resolve(workspace_id, *reference)
    if target.default_headers:
        raise _refused(
            "target.default_headers",
            "this host does not pass headers on to targets",
            "leave the headers out; store a key as a secret (api_key_secret)",
        )
    return place_of(target.url, target.name, target.api_key_secret)


def place_of(url: str, name: str, secret: str | None) -> ModelPlace:
    """Make a model's endpoint from its URL. A request path at its end, such as `/chat/completions`, is removed."""
    url = url.rstrip("/").removesuffix("/chat/completions").removesuffix("/completions")
    return ModelPlace(url, name, secret.rpartition("/")[2] if secret else None)


def _template(spec: SpecIn) -> str | dict[str, Any] | None:
    """Return the job's prompt template; if there is none, infer a template from the first row in the request."""
    if spec.prompt_template is not None or isinstance(spec.dataset, str) or not spec.dataset:
        return spec.prompt_template
    first = spec.dataset[0] if spec.field_mapping is None else spec.field_mapping.applied_to(spec.dataset[0])
    return template_of(first, spec.target.url if isinstance(spec.target, NemoModelIn) else "")


def template_of(row: dict[str, Any], url: str) -> str | dict[str, Any] | None:
    """Return the prompt template that NeMo infers from a row for the model at `url`, or None if it infers none."""
    try:
        template = inferred_template(row, url)
    except ValueError:
        return None
    return str(template["prompt"]) if "prompt" in template else template


def _prompt(template: str | dict[str, Any] | None) -> tuple[str | None, tuple[dict[str, Any], ...], dict[str, Any]]:
    """Split a template into its prompt (or None), its messages, and its other fields."""
    if isinstance(template, str):
        return template, (), {}
    if template is None or not isinstance(template.get("messages"), list) or not template["messages"]:
        hint = (
            'write a string, "{{item.question}}", or {"messages": [{"role": "user", "content": "{{item.question}}"}]}'
        )
        raise _refused("prompt_template", "there is no prompt for the model", hint)
    messages = tuple(template["messages"])
    if not all(isinstance(one, dict) for one in messages):
        raise _refused(
            "prompt_template.messages",
            "each message must be an object with role and content",
            'write {"role": "user", "content": "{{item.question}}"}',
        )
    return None, messages, {key: value for key, value in template.items() if key != "messages"}


def _inference(params: ParamsIn, asked: dict[str, Any], *, nim: bool) -> dict[str, Any]:
    """Return a request's fields except the prompt, in the form for an NVIDIA NIM (`nim`) or for OpenAI.

    Parameters of the run override the template's parameters (`asked`).
    """
    own = {key: value for key, value in (params.inference or {}).items() if value is not None}
    sent = {**asked, **own}
    if nim and not {"max_tokens", "max_completion_tokens"} & set(sent):
        sent["max_tokens"] = _NIM_TOKENS
    if params.reasoning is not None and params.reasoning.effort is not None:
        sent["reasoning_effort"] = params.reasoning.effort
    if params.structured_output is not None:
        if not isinstance(params.structured_output.get("schema"), dict):
            raise _refused(
                "params.structured_output", "the schema is missing", 'write {"schema": {"type": "object", …}}'
            )
        mode = default_structured_output_mode("nim" if nim else "openai")
        sent |= with_schema({}, params.structured_output, mode)
        sent |= sent.pop("extra_body", {})
    return sent


def _refused(field: str, message: str, hint: str | None) -> InvalidRequest:
    return InvalidRequest.of(f"spec.{field}", message, hint, what="job")
