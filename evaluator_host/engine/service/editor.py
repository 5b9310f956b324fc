"""Answers an editor's questions about Python code. The program that finds the answers runs in a sandbox.

The first question of a workspace about a package set starts a sandbox. Later questions about evaluators on this set use
the same sandbox. The sandbox ends when it has been idle for a while, like the sandbox of an evaluator.
"""

import asyncio
import time
from dataclasses import replace
from functools import cache
from typing import Any, Final

from pydantic import ValidationError

from evaluator_host.engine.config.settings import RUNTIMES_DIR
from evaluator_host.engine.pool import LeaseRequest, Pool
from evaluator_host.engine.sandbox.messages import LoadRequest
from evaluator_host.engine.service.calls import Callee, call_once
from evaluator_host.engine.service.prepared import Prepared, sandbox_spec
from evaluator_host.engine.service.row_io import Bound
from evaluator_host.engine.system.adapter import Adapter
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluation import EditorAnswer
from evaluator_host.types.evaluator import Contract, EncodedRow, Json, Language, Limits, Policy, Row
from evaluator_host.types.json_values import encode_json
from evaluator_host.types.outcome import ErrorCode, EvaluationError, Loaded, Returned, Skipped

_LIMITS: Final = Limits(timeout_s=5.0)
_QUESTION_BYTES: Final = 4 << 20
_ANSWER: Final = Adapter(EditorAnswer)


async def answer_question(pool: Pool, prepared: Prepared, question: dict[str, Json]) -> EditorAnswer:
    """Return the answer to a question about a prepared Python evaluator.

    The answer depends on the environment, code and files of `prepared`. `question` is
    `{"what", "line", "column", "given"}`, the body of `POST /v1/editor` without `evaluator`.

    Raises:
      InvalidRequest: the evaluator is not in Python, or the question is too long.
      Busy: too many calls are already waiting.
      SandboxUnavailable: no sandbox can be started.
    """
    evaluator = prepared.evaluator
    if evaluator.language is not Language.PYTHON:
        raise InvalidRequest(f"an editor can ask about Python code only, not about {evaluator.language}")
    named = {"code": evaluator.code, "files": evaluator.files, **question}
    body = await asyncio.to_thread(encode_json, {"named": named, "exact": True})
    if len(body) > _QUESTION_BYTES:
        raise InvalidRequest(f"code, files and `given` together are larger than {_QUESTION_BYTES >> 20} MB; send less")

    async def bind(_: Loaded, __: Row | EncodedRow | EvaluationError) -> Bound:
        return Bound(body)

    since = time.perf_counter()
    outcome = (await call_once(Callee(pool, _language_server(prepared), bind), EncodedRow({}), since=since)).outcome
    assert not isinstance(outcome, Skipped)  # noqa: S101 - only a row of a data set is
    facts: dict[str, Any] = {"run_ms": outcome.run_ms}
    if outcome.peak_memory_kb is not None:
        facts["peak_memory_mb"] = round(outcome.peak_memory_kb / 1024, 1)
    if not isinstance(outcome, Returned):
        return EditorAnswer(error=outcome.error, **facts)
    try:
        return replace(_ANSWER.read(outcome.value), **facts)
    except ValidationError:  # packages of the set run in the same process, and may have changed the answer
        return EditorAnswer(
            error=EvaluationError(
                ErrorCode.INVALID_RESULT,
                (
                    "the answer cannot be read, because a package changed it; remove packages that the code does "
                    "not need"
                ),
            ),
            **facts,
        )


@cache
def _program() -> str:
    return (RUNTIMES_DIR / "python" / "programs" / "language.py").read_text("utf-8")


def _language_server(prepared: Prepared) -> Prepared:
    """Return the program that answers questions, prepared for the environment of an evaluator.

    Evaluators with the same environment share a sandbox of this program.
    """
    environment, request = prepared.environment, prepared.request
    spec = sandbox_spec(environment, _LIMITS, request.spec.stand_in)
    modules = [name for name, _ in environment.import_ms]
    load = LoadRequest(
        code=f"{_program()}\n\nwarm({modules!r})\n",
        language=Language.PYTHON,
        contract=Contract.MAIN,
        entry=None,
        policy=Policy.NONE,
        limits=_LIMITS,
        timeout_s=request.load.timeout_s,
    )
    digest = f"editor {environment.digest} {spec.stand_in}"
    evaluator = replace(prepared.evaluator, limits=_LIMITS)
    return replace(prepared, evaluator=evaluator, request=LeaseRequest(request.workspace, digest, spec, load))
