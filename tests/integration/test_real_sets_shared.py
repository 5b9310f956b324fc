"""Evaluators share an installed package set: it is not installed again, needs no network, and has the same versions."""

import asyncio
import json
from typing import Any

import pytest

from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.service import Service
from evaluator_host.types.errors import IndexUnavailable
from evaluator_host.types.evaluator import Evaluator, Language, Row
from evaluator_host.types.outcome import EvaluationResult
from tests.conftest import ON_BUBBLEWRAP, settings
from tests.counting import dead_index
from tests.real_sets import BINARY, PLAIN, TEXTS

# installing and listing are the same on both backends; test_docker_packages.py tests sets as images
pytestmark = ON_BUBBLEWRAP

PYTHON, JAVASCRIPT, TYPESCRIPT = Language.PYTHON, Language.JAVASCRIPT, Language.TYPESCRIPT
ROWS = 12

FLOOR = (
    'import { floor } from "lodash"; export const evaluate = (inputs, outputs, trace) => floor(outputs.length + 0.5);'
)
RATIO = "from rapidfuzz import fuzz\ndef evaluate(inputs, outputs, trace):\n    return fuzz.ratio(outputs, 'abc')\n"
VERSIONS = {
    PYTHON: """
import rapidfuzz

def evaluate(inputs, outputs, trace):
    return {"score": 1, "label": rapidfuzz.__version__}
""",
    TYPESCRIPT: """import * as _ from "lodash";
export const evaluate = (inputs: object, outputs: string, trace: object) => ({ score: 1, label: _.VERSION });
""",
}
INSTALLED = {
    PYTHON: """
import json
from importlib.metadata import distributions

def evaluate(inputs, outputs, trace):
    found = [[it.name, it.version] for it in distributions(path=["/opt/packages"])]
    return {"score": len(found), "reason": json.dumps(found)}
""",
    JAVASCRIPT: """const fs = require("fs"), path = require("path");
const names = (folder) => fs.readdirSync(folder).filter((name) => !name.startsWith("."));
function found(folder) {
  if (!fs.existsSync(folder)) return [];
  const packages = names(folder).flatMap((name) => name[0] === "@" ? names(path.join(folder, name)).map((sub) => `${name}/${sub}`) : [name]);
  return packages.flatMap((name) => {
    const { version } = JSON.parse(fs.readFileSync(path.join(folder, name, "package.json")));
    return [[name, version], ...found(path.join(folder, name, "node_modules"))];
  });
}
exports.evaluate = (inputs, outputs, trace) => {
  const all = found("/opt/packages/node_modules");
  return { score: all.length, reason: JSON.stringify(all) };
};
""",
}


async def scored(service: Service, code: str, *packages: str, language: Language, **row: Any) -> EvaluationResult:
    evaluator = Evaluator(code=code, language=language, packages=packages)
    result = await service.evaluate(evaluator, Row(**{"outputs": "abc", **row}))
    assert result.error is None, result.error
    return result


@pytest.mark.long("test_real_sets.py installs real packages")
@pytest.mark.parametrize(
    ("language", "packages"),
    [(PYTHON, TEXTS), (JAVASCRIPT, PLAIN), (JAVASCRIPT, BINARY)],
    ids=["pip", "npm", "npm, with packages for other platforms"],
)
async def test_the_result_lists_every_package_that_is_there(
    service: Service, language: Language, packages: tuple[str, ...]
) -> None:
    result = await scored(service, INSTALLED[language], *packages, language=language)
    listed = {(package.name, package.version) for package in result.environment.packages}
    there = {(name.replace("_", "-").lower(), version) for name, version in json.loads(result.reason or "")}
    assert listed == there
    assert len(listed) > len(packages)
    assert sum(package.requested for package in result.environment.packages) == len(packages)


@pytest.mark.long
async def test_a_second_evaluator_asks_the_network_for_nothing(service: Service) -> None:
    await scored(service, RATIO, "rapidfuzz==3.13.0", language=PYTHON)
    await scored(service, FLOOR, "lodash@4.17.21", language=JAVASCRIPT)
    async with dead_index() as index:
        nowhere = {"pip_index_url": index.url, "npm_registry": index.url, "proxy": index.url, "index_timeout_s": 20}
        async with open_engine(settings(service.info().backend, **nowhere)) as offline:
            second = await scored(offline, RATIO.replace("abc", "ab"), "rapidfuzz==3.13.0", language=PYTHON)
            assert second.score == 80.0
            second = await scored(offline, FLOOR + " ", "lodash@4.17.21", language=JAVASCRIPT)
            assert second.score == 3
            assert index.asked == 0
            with pytest.raises(IndexUnavailable):
                await scored(offline, FLOOR, "lodash@4.17.19", language=JAVASCRIPT)
            assert index.asked > 0


@pytest.mark.long
async def test_two_versions_run_side_by_side(service: Service) -> None:
    wanted = [
        (PYTHON, "rapidfuzz==", "3.13.0"),
        (TYPESCRIPT, "lodash@", "4.17.21"),
        (PYTHON, "rapidfuzz==", "3.14.3"),
        (TYPESCRIPT, "lodash@", "4.17.20"),
    ]
    rows = [one for one in wanted for _ in range(ROWS)]
    interleaved = [one for start in range(ROWS) for one in rows[start::ROWS]]
    results = await asyncio.gather(
        *(
            scored(service, VERSIONS[language], name + version, language=language)
            for language, name, version in interleaved
        )
    )
    assert [result.label for result in results] == [version for _, _, version in interleaved]
    assert len({result.environment.digest for result in results}) == len(wanted)
