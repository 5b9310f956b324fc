"""Runs a UiPath agent project on a row's inputs in a sandbox. To the host, this program is an evaluator without scores.

The host replaces `@project@` with the agent's packed files. The files are unpacked when the program is loaded, and
again for every row, because a row's files are removed when the row ends.
"""

import asyncio
import base64
import dataclasses
import importlib.util
import inspect
import json
import os
import sys
import time
import traceback
import typing
import zlib

import uipath.tracing  # noqa: F401 - first, so that spans are recorded before the agent is loaded

PROJECT = json.loads(zlib.decompress(base64.b64decode("@project@")))
ROOT = os.path.join(os.getcwd(), "agent")
AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"


def unpack():
    """Unpack the agent's files, and change to their folder."""
    if not os.path.isdir(ROOT):
        for path, content in PROJECT["files"].items():
            file = os.path.join(ROOT, path)
            os.makedirs(os.path.dirname(file), exist_ok=True)
            with open(file, "wb") as opened:
                opened.write(base64.b64decode(content))
    os.chdir(ROOT)


def span_recorder():
    """Return a function that returns the spans that the light modules or the real package have recorded so far."""
    try:
        from uipath.eval._host import recorded_spans
    except ImportError:
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        exporter = InMemorySpanExporter()
        provider = trace.get_tracer_provider()
        if not isinstance(provider, TracerProvider):
            provider = TracerProvider()
            trace.set_tracer_provider(provider)
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        return lambda: [json.loads(span.to_json()) for span in exporter.get_finished_spans()]
    return recorded_spans


def simulate(mocks):
    """Let the functions that a test case simulates return the answers in `mocks`.

    Raises:
      RuntimeError: the real package is pinned, and this program cannot set its simulation.
    """
    import uipath.eval.mocks

    if not hasattr(uipath.eval.mocks, "set_behaviors"):
        raise RuntimeError("mockingStrategy does not work with the pinned package uipath: leave out its pin")
    uipath.eval.mocks.set_behaviors(mocks)


def load():
    """Import the agent's file and return its function."""
    file = os.path.join(ROOT, PROJECT["file"])
    sys.path[:0] = dict.fromkeys([os.path.dirname(file), ROOT])
    name = os.path.splitext(os.path.basename(file))[0]
    name = "agent_module" if name in sys.modules else name
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    function = getattr(module, PROJECT["function"], None)
    if not callable(function):
        raise AttributeError(f"{PROJECT['file']} has no function {PROJECT['function']}")
    return function


def given(function, inputs):
    """Return the agent's arguments: the inputs, converted to the type of the first parameter, if there is one."""
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters:
        return []
    try:
        wanted = typing.get_type_hints(function).get(parameters[0].name)
    except (NameError, TypeError):
        wanted = None
    return [made(wanted, inputs)]


def made(wanted, value):
    """Convert a dict to class `wanted` if that is a model, dataclass or annotated class; else return the dict."""
    if not inspect.isclass(wanted) or not isinstance(value, dict) or issubclass(wanted, dict):
        return value
    if hasattr(wanted, "model_validate"):
        return wanted.model_validate(value)
    if dataclasses.is_dataclass(wanted):
        hints = typing.get_type_hints(wanted)
        known = [field.name for field in dataclasses.fields(wanted) if field.init and field.name in value]
        return wanted(**{name: made(hints.get(name), value[name]) for name in known})
    if getattr(wanted, "__annotations__", None) and wanted.__module__ != "builtins":
        hints = typing.get_type_hints(wanted.__init__)
        known = [name for name in inspect.signature(wanted).parameters if name in value]
        return wanted(**{name: made(hints.get(name), value[name]) for name in known})
    return value


def plain(value):
    """Convert an agent's answer to a JSON object, by UiPath's rules."""
    if value is None:
        return {}
    if isinstance(value, dict):
        return value
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, (str, int, float, bool, list, tuple)) or not hasattr(value, "__dict__"):
        return {"result": value}
    return {name: inner for name, inner in vars(value).items() if not name.startswith("_")}


def told(error):
    """Format an exception: the lines of its traceback in the agent's own files, and its message."""
    frames = [one for one in traceback.extract_tb(error.__traceback__) if one.filename.startswith(ROOT)]
    where = [f"{os.path.relpath(one.filename, ROOT)}:{one.lineno} in {one.name}" for one in frames[-3:]]
    said = f"{type(error).__name__}: {error}"
    return f"{said} ({', '.join(where)})" if where else said


if os.path.isfile(AUTHORITIES):  # Python and `requests` read the certificates from different variables
    os.environ.update(SSL_CERT_FILE=AUTHORITIES, REQUESTS_CA_BUNDLE=AUTHORITIES)
unpack()
recorded = span_recorder()
try:
    main, broken = load(), None
except Exception as error:  # noqa: BLE001 - every row reports the error that prevented the load
    main, broken = None, told(error)


async def evaluate(inputs, outputs, trace):
    """Run the agent; return its output and spans, or its error, as the details of a result without a score."""
    unpack()
    started = time.perf_counter()
    output, error = None, broken
    if main is not None:
        try:
            if outputs:
                simulate(outputs["mocks"])
            answer = main(*given(main, inputs))
            output = plain(await answer if inspect.isawaitable(answer) else answer)
        except (Exception, asyncio.CancelledError, SystemExit) as fault:  # noqa: BLE001 - as above
            error = told(fault)
    seconds = time.perf_counter() - started
    return {"score": float(error is None), "details": {
        "output": output, "spans": recorded(), "error": error, "seconds": seconds,
    }}  # fmt: skip
