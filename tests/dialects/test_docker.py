"""The workbench's examples of every platform run in Docker containers, in each language."""

import asyncio
import json
from pathlib import Path

import pytest

import evaluator_host
from evaluator_host.engine.service import Service
from evaluator_host.types.evaluator import Evaluator, Language, Row

FOLDER = Path(evaluator_host.__file__).parent / "web" / "ui" / "src" / "examples"
SUFFIXES = {Language.PYTHON: "py", Language.JAVASCRIPT: "js", Language.TYPESCRIPT: "ts"}


@pytest.mark.sampled(3)
@pytest.mark.timeout(400)
@pytest.mark.parametrize("service", ["docker"], indirect=True)
@pytest.mark.parametrize("language", Language)
async def test_every_platforms_example_scores_in_a_container(service: Service, language: Language) -> None:
    shown = {path.parent: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*/example.json"))}
    files = {home / f"evaluator.{SUFFIXES[language]}": one for home, one in shown.items() if "contract" in one}
    platforms = {file: one for file, one in files.items() if file.exists()}
    assert len(platforms) >= 5
    programs = {file: file.read_text() for file in platforms}
    turns = asyncio.Semaphore(4)

    async def scored(file: Path, example: dict) -> None:
        async with turns:
            result = await service.evaluate(Evaluator(programs[file], language), Row(**example["row"]))
        found = (result.score, result.evaluator.contract)
        assert found == (example["score"], example["contract"]), (file, result)
        assert result.native, file

    await asyncio.gather(*(scored(file, one) for file, one in platforms.items()))
