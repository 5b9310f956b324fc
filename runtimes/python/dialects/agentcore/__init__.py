"""Runs AgentCore evaluators (dialect `agentcore`): Lambda handlers, which may have the package's decorator."""

from __future__ import annotations

from evaluator_runner import dialects, entry
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from evaluator_runner.outline import Outline

CONTRACT = "agentcore"
WORDS = ("bedrock_agentcore", "lambda_handler", "handler")
PREBOUND = False
_DECORATOR = "custom_code_based_evaluator"
_PLAIN = ("lambda_handler", "handler")
_ARGUMENTS = ("event", "context")
_PATIENCE_MS = 300_000


class LambdaContext:
    """The second argument of a Lambda handler."""

    function_name = "evaluator"
    function_version = "$LATEST"
    memory_limit_in_mb = "256"
    aws_request_id = "00000000-0000-0000-0000-000000000000"
    invoked_function_arn = "arn:aws:lambda:local:000000000000:function:evaluator"

    def get_remaining_time_in_millis(self) -> int:
        """Return the longest time that Lambda gives an evaluator, in milliseconds."""
        return _PATIENCE_MS


def sign(outline: Outline, name: str | None) -> tuple[int, str] | None:
    """Recognise a function that has AgentCore's decorator, or the name and parameters of a Lambda handler.

    Return a rank (1 is the most certain) and a reason, or None if the code is not recognised.
    """
    decorated = outline.decorated_by("bedrock_agentcore", _DECORATOR, of=name)
    if decorated is not None:
        return dialects.DECORATED, f"`{decorated.name}` is decorated with `{_DECORATOR}`"
    for plain in (name,) if name is not None else _PLAIN:
        found = outline.functions.get(plain)
        if found is not None and tuple(found.parameters) == _ARGUMENTS and plain in _PLAIN:
            return dialects.NAMED, f"`{plain}` takes event and context"
    return None


def find(namespace: dict[str, Any], *, name: str | None, config: dict[str, Any]) -> entry.Entry:
    """Return an `Entry` that calls the handler with the event and a context."""
    found = entry.find_function(namespace, name or _name(namespace), _ARGUMENTS)
    found.bind = _bind
    return found


def _name(namespace: dict[str, Any]) -> str:
    decorated = [name for name, one in namespace.items() if callable(getattr(one, "unwrapped", None))]
    plain = [name for name in _PLAIN if name in namespace]
    return [*decorated, *plain, _PLAIN[0]][0]


def _bind(args: list[Any]) -> tuple[list[Any], dict[str, Any]]:
    return [args[0], LambdaContext()], {}
