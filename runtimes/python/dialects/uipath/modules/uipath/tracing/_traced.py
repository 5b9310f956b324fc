"""Records each traced call in a span: the tool's name, its arguments and its outcome, as JSON."""

from __future__ import annotations

import inspect
import json
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from enum import Enum
from functools import wraps
from typing import TYPE_CHECKING, Any

from opentelemetry import context as contexts
from opentelemetry.trace import Status, StatusCode, get_current_span

from ._recording import tracer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_OFF = contexts.create_key("uipath-recording-off")
_HIDDEN = {"redacted": "hidden by the author"}


def traced(
    name: Any = None,
    run_type: str | None = None,
    span_type: str | None = None,
    input_processor: Callable[..., Any] | None = None,
    output_processor: Callable[..., Any] | None = None,
    hide_input: bool = False,  # noqa: FBT001, FBT002 - the package's signature
    hide_output: bool = False,  # noqa: FBT001, FBT002
    recording: bool = True,  # noqa: FBT001, FBT002
) -> Any:
    """Record calls to a function as spans; with `span_type="tool"`, as calls to a tool.

    Args:
      name: Name of the spans and of the tool; None for the function's name.
      run_type: Stored in the span.
      span_type: Stored in the span.
      input_processor: Function that gets the arguments by name; its result replaces them in the span.
      output_processor: Function that gets the returned value; its result replaces the value in the span.
      hide_input: Whether to leave the arguments out of the span.
      hide_output: Whether to leave the outcome out of the span.
      recording: Whether to record spans; if false, neither this call nor calls inside it are recorded.
    """
    if callable(name):
        return traced()(name)
    call = _Call(name, run_type, span_type, recording=recording)
    call.input = (lambda _: _HIDDEN) if hide_input else input_processor
    call.output = (lambda _: _HIDDEN) if hide_output else output_processor
    return call.around


class _Call:
    """Traces the calls to one function."""

    def __init__(self, name: str | None, run_type: str | None, span_type: str | None, *, recording: bool) -> None:
        self.name = name
        self.run_type = run_type
        self.span_type = span_type
        self.recording = recording
        self.input: Callable[..., Any] | None = None
        self.output: Callable[..., Any] | None = None

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap the function so that its calls are traced."""
        if inspect.iscoroutinefunction(function):
            return self._around_coroutine(function)
        if inspect.isasyncgenfunction(function):
            return self._around_async_generator(function)
        if inspect.isgeneratorfunction(function):
            return self._around_generator(function)

        @wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            with self._span(function, args, kwargs, "function_call_sync") as returned:
                returned.append(function(*args, **kwargs))
                return returned[0]

        return called

    def _around_coroutine(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            with self._span(function, args, kwargs, "function_call_async") as returned:
                returned.append(await function(*args, **kwargs))
                return returned[0]

        return awaited

    def _around_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def generated(*args: Any, **kwargs: Any) -> Iterator[Any]:
            with self._span(function, args, kwargs, "function_call_generator_sync") as returned:
                items: list[Any] = []
                for item in function(*args, **kwargs):
                    items.append(item)
                    _tell(item)
                    yield item
                returned.append(items)

        return generated

    def _around_async_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        async def generated(*args: Any, **kwargs: Any) -> Any:
            with self._span(function, args, kwargs, "function_call_generator_async") as returned:
                items: list[Any] = []
                async for item in function(*args, **kwargs):
                    items.append(item)
                    _tell(item)
                    yield item
                returned.append(items)

        return generated

    @contextmanager
    def _span(self, function: Callable[..., Any], args: Any, kwargs: Any, kind: str) -> Iterator[list[Any]]:
        """Open a span for the block; the block appends the returned value to the yielded list."""
        returned: list[Any] = []
        if not self.recording or contexts.get_value(_OFF):
            token = contexts.attach(contexts.set_value(_OFF, True))  # noqa: FBT003
            try:
                yield returned
            finally:
                contexts.detach(token)
            return
        name = self.name or function.__name__
        with tracer.start_as_current_span(name, record_exception=True, set_status_on_exception=False) as span:
            span.set_attributes({**self._kind(name, kind), "input.mime_type": "application/json"})
            span.set_attribute("input.value", self._inputs(function, args, kwargs))
            try:
                yield returned
            except Exception as error:
                span.set_status(Status(StatusCode.ERROR, str(error)))
                raise
            if returned:
                outcome = returned[0] if self.output is None else self.output(returned[0])
                span.set_attributes({"output.value": _json(outcome), "output.mime_type": "application/json"})

    def _kind(self, name: str, otherwise: str) -> dict[str, str]:
        kind = self.span_type or otherwise
        tool = kind.upper() == "TOOL"
        found = (
            {"openinference.span.kind": "TOOL", "tool.name": name, "span_type": "TOOL"} if tool else {"span_type": kind}
        )
        return found if self.run_type is None else {**found, "run_type": self.run_type}

    def _inputs(self, function: Callable[..., Any], args: Any, kwargs: Any) -> str:
        text = _json(_named(function, args, kwargs))
        return text if self.input is None else _json(self.input(json.loads(text)))


def _tell(item: Any) -> None:
    if not contexts.get_value(_OFF):
        get_current_span().add_event(f"Yielded: {item}")


def _named(function: Callable[..., Any], args: Any, kwargs: Any) -> dict[str, Any]:
    """Return the arguments by name, with defaults and without a method's `self` or `cls`."""
    signature = inspect.signature(function)
    try:
        bound = signature.bind_partial(*args, **kwargs)
    except TypeError:
        return {"args": args, "kwargs": kwargs}
    bound.apply_defaults()
    found: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            found.update(value)
        elif name not in {"self", "cls"}:
            found[name] = value
    return found


def _json(value: Any) -> str:
    return json.dumps(value, default=_plain)


def _plain(value: Any) -> Any:
    if callable(getattr(value, "model_dump", None)) and not isinstance(value, type):
        return value.model_dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Enum):
        return value.value
    return list(value) if isinstance(value, set | frozenset) else str(value)
