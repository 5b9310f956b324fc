"""The model that an online job asks first, as options of the command line."""

from typing import Annotated, Any, TypeAlias

import typer

from evaluator_host.model.errors import InvalidRequest, Problem
from evaluator_host.model.json_values import InvalidJson, decode_json
from evaluator_host.schemas.jobs import Target

UrlOption: TypeAlias = Annotated[
    str | None, typer.Option("--target-url", help="OpenAI-compatible API that makes the outputs: https://host/v1")
]
ModelOption: TypeAlias = Annotated[str | None, typer.Option("--model", help="Its model.")]
PromptOption: TypeAlias = Annotated[str | None, typer.Option("--prompt", help="What it is asked: {{ question }}")]
SystemOption: TypeAlias = Annotated[str | None, typer.Option("--system", help="The system's message before that.")]
KeyOption: TypeAlias = Annotated[
    str | None, typer.Option("--api-key-secret", help="Name of the secret that is its key.")
]
InferenceOption: TypeAlias = Annotated[
    list[str] | None, typer.Option("--inference", help="NAME=VALUE sent along, several times: temperature=0.")
]
ConcurrencyOption: TypeAlias = Annotated[int, typer.Option("--concurrency", min=1, max=256, help="Requests at once.")]
TimeoutOption: TypeAlias = Annotated[float, typer.Option("--target-timeout-s", help="For one answer.")]
RetriesOption: TypeAlias = Annotated[int, typer.Option("--retries", min=0, max=20, help="After the first try.")]


def read_target(
    url: str | None, model: str | None, prompt: str | None, *, inference: list[str] | None, **others: Any
) -> Target | None:
    """Return the target of the options, None without `--target-url`.

    Raises:
      InvalidRequest: options that belong together are not all there, or a value cannot be read.
    """
    if url is None:
        if model or prompt or inference or others.get("api_key") or others.get("system"):
            raise InvalidRequest("a model is asked only with --target-url, --model and --prompt")
        return None
    if not model or not prompt:
        missing = "--model" if not model else "--prompt"
        raise InvalidRequest("--target-url needs --model and --prompt", problems=(Problem(missing, "is missing"),))
    return Target(url, model, prompt_template=prompt, inference=dict(map(_parameter, inference or ())), **others)


def _parameter(given: str) -> tuple[str, Any]:
    """Return a parameter; what is no JSON is a text."""
    name, equals, value = given.partition("=")
    if not (name and equals):
        raise InvalidRequest(f"--inference {given!r} is not NAME=VALUE, as in temperature=0")
    try:
        return name, decode_json(value.encode())
    except InvalidJson:
        return name, value
