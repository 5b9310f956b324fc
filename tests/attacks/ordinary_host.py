"""Evaluates code in a service that an ordinary user runs with bubblewrap, because an ordinary user's sandbox is built
differently from root's.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

from tests.ordinary_user import run_as_ordinary_user
from tests.tools import TOOLS, tool_folders

SCRIPT = """
import asyncio, json, shutil, sys
from dataclasses import asdict
from pathlib import Path
from evaluator_host.engine.config.settings import Settings
from evaluator_host.types.evaluator import Evaluator, Language, Limits, Row
from evaluator_host.types.json_values import encode_json
from evaluator_host.engine.opening import open_engine

async def answers(asked, data):
    async with open_engine(Settings(sandbox="bubblewrap", data_dir=data), prewarm=True) as service:
        for one in asked:
            evaluator = Evaluator(one["code"], Language(one["language"]), limits=Limits(timeout_s=one["timeout_s"]))
            yield await service.evaluate(evaluator, Row(inputs=one["inputs"]))

async def main(asked, *tools):
    data = Path("data").resolve()
    for tool in tools:
        shutil.copytree(tool, data / "toolchain" / Path(tool).name)
    return [answer async for answer in answers(json.loads(Path(asked).read_text()), data)]

found = asyncio.run(main(*sys.argv[1:]))
sys.stdout.buffer.write(encode_json(found))
"""


async def evaluate_as_ordinary_user(asked: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """Evaluate each `{code, language, inputs, timeout_s}` in turn, and return the results in the API's format.

    Args:
      asked: The evaluators, each with its row.
      folder: A folder for a file that the ordinary user reads.
    """
    return await asyncio.to_thread(_evaluate, asked, folder)


def _evaluate(asked: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    folder.chmod(0o755)
    question = folder / "asked.json"
    question.write_text(json.dumps(asked))
    answer = run_as_ordinary_user(SCRIPT, question, *tool_folders(), also=(folder, TOOLS), timeout_s=100)
    results: list[dict[str, Any]] = json.loads(answer)
    return results
