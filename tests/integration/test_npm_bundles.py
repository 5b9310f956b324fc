"""npm packages that contain other packages (`bundledDependencies`, a shrinkwrap) or a broken source map can be loaded
and used.

The host never requests the addresses outside the registry that such packages name.
"""

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator_host.engine.service import Service
from evaluator_host.types.errors import PackagesFailed
from evaluator_host.types.evaluator import Evaluator, Language, Limits, Row
from evaluator_host.types.outcome import ErrorCode
from tests.builds import JAVASCRIPT, building, evaluated, nothing_left, refusal, value_of
from tests.indexes import Index
from tests.packages import npm_package

SAYS = 'import x from "{0}";\nexport const evaluate = (i, o, t) => ({{ score: 1, said: x }})'
INNER = {
    "node_modules/inner/package.json": '{"name": "inner", "version": "1.0.0", "main": "i.js"}',
    "node_modules/inner/i.js": "module.exports = 'bundled'",
}
NEEDS = {"dependencies": {"inner": "1.0.0"}}
REQUIRES = "module.exports = require('inner')"


@pytest.fixture(scope="module")
def index() -> Iterator[Index]:
    with Index() as serving:
        serving.add_npm(npm_package("inner", {"index.js": "module.exports = 'registry'"}))
        yield serving


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
async def host(index: Index, home: Path) -> AsyncIterator[Service]:
    async with building(home, index) as opened:
        yield opened


def shrinkwrap(**inner: str) -> str:
    packages = {"": {"name": "outer", "version": "1.0.0", **NEEDS}, "node_modules/inner": {"version": "1.0.0", **inner}}
    return json.dumps({"name": "outer", "version": "1.0.0", "lockfileVersion": 3, "packages": packages})


def dist(index: Index) -> dict[str, str]:
    document = json.loads(index.files["/npm/inner"][1])
    found: dict[str, str] = document["versions"]["1.0.0"]["dist"]
    return found


@pytest.mark.long
async def test_a_package_that_bundles_another_scores(host: Service, index: Index, home: Path) -> None:
    manifest = {**NEEDS, "bundleDependencies": ["inner"]}
    index.add_npm(npm_package("bundle", {"index.js": REQUIRES, **INNER}, manifest=manifest))
    value = await value_of(host, SAYS.format("bundle"), "bundle@1.0.0", language=JAVASCRIPT)
    assert value["said"] == "bundled"
    nothing_left(home)


@pytest.mark.long
async def test_a_package_with_a_shrinkwrap_scores(host: Service, index: Index, home: Path) -> None:
    files = {"index.js": REQUIRES}
    files["npm-shrinkwrap.json"] = shrinkwrap(resolved=dist(index)["tarball"], integrity=dist(index)["integrity"])
    index.add_npm(npm_package("shrunk", files, manifest={**NEEDS, "_hasShrinkwrap": True}))
    value = await value_of(host, SAYS.format("shrunk"), "shrunk@1.0.0", language=JAVASCRIPT)
    assert value["said"] == "registry"
    nothing_left(home)


@pytest.mark.long
@pytest.mark.parametrize(
    "resolved",
    ["{0}/npm/inner/-/inner-1.0.0.tgz", "git+{0}/inner.git", "file:../../../../../etc", "../../../../../../etc"],
)
async def test_a_shrinkwrap_that_leads_out_of_the_registry_is_refused_and_asks_nobody(
    host: Service, index: Index, home: Path, resolved: str
) -> None:
    name = f"leads-{abs(hash(resolved))}"
    with Index() as elsewhere:
        inner = shrinkwrap(resolved=resolved.format(elsewhere.url), integrity=dist(index)["integrity"])
        files = {"index.js": REQUIRES, "npm-shrinkwrap.json": inner}
        index.add_npm(npm_package(name, files, manifest={**NEEDS, "_hasShrinkwrap": True}))
        error = await refusal(host, f"{name}@1.0.0", language=JAVASCRIPT)
        assert isinstance(error, PackagesFailed)
        assert elsewhere.asked == []
    nothing_left(home)


MAPS = {
    "no-json": ("index.js.map", "this is not a map"),
    "climbs": ("../../../../etc/passwd", None),
    "missing": ("nothing.js.map", None),
    "empty": ("data:application/json;base64,e30x", None),
}


@pytest.mark.long
@pytest.mark.parametrize("name", MAPS)
async def test_a_broken_source_map_fails_no_load(host: Service, index: Index, home: Path, name: str) -> None:
    target, text = MAPS[name]
    comment = f"\n//# sourceMappingURL={target}"
    files = {"index.js": f"module.exports = 'ok'{comment}", **({target: text} if text else {})}
    index.add_npm(npm_package(f"map-{name}", files))
    code = SAYS.format(f"map-{name}")
    for tail in ("", comment):
        value = await value_of(host, code + tail, f"map-{name}@1.0.0", language=JAVASCRIPT)
        assert value["said"] == "ok"
    failing = await evaluated(
        host, code.replace("({", "{ throw new Error(x); ({") + " }", f"map-{name}@1.0.0", language=JAVASCRIPT
    )
    assert failing.error is not None
    assert failing.error.message == "ok"
    nothing_left(home)


async def test_a_real_package_with_bundled_ones_scores(service: Service) -> None:
    code = """
import { App, Chart, ApiObject, Yaml } from "cdk8s";
export function evaluate(inputs, outputs) {
  const chart = new Chart(new App(), "chart");
  new ApiObject(chart, "one", { apiVersion: "v1", kind: outputs });
  return { score: 1, said: Yaml.stringify(chart.toJson()[0]) };
}
"""
    pins = ("cdk8s@2.70.106", "constructs@10.8.1")
    evaluator = Evaluator(code=code, language=Language.JAVASCRIPT, packages=pins)
    result = await service.evaluate(evaluator, Row(outputs="ConfigMap"))
    assert result.error is None, result.error
    assert result.score == 1
    assert "kind: ConfigMap" in result.value["said"]  # type: ignore[index, call-overload]


# for each pin: an import, an expression that must be true, and the memory that the package needs if the default is too
# little
REAL = {
    "ai@5.0.76": ("import { cosineSimilarity } from 'ai'", "cosineSimilarity([1, 0], [1, 0]) === 1"),
    "ajv@8.17.1": ("import Ajv from 'ajv'", "new Ajv().validate({ type: 'string' }, 'a')"),
    "bcrypt@6.0.0": ("import bcrypt from 'bcrypt'", "bcrypt.compareSync('x', bcrypt.hashSync('x', 4))"),
    "cheerio@1.1.2": ("import { load } from 'cheerio'", "load('<p>hi</p>')('p').text() === 'hi'"),
    "compromise@14.14.4": ("import nlp from 'compromise'", "nlp('she walks').verbs().toPastTense().out() === 'walked'"),
    "fast-levenshtein@3.0.0": ("import levenshtein from 'fast-levenshtein'", "levenshtein.get('abc', 'abd') === 1"),
    "js-tiktoken@1.0.21": ("import { getEncoding } from 'js-tiktoken'", "getEncoding('cl100k_base').encode('hello world').length === 2"),
    "jsdom@25.0.1": ("import { JSDOM } from 'jsdom'", "new JSDOM('<p>hi</p>').window.document.querySelector('p').textContent === 'hi'", 512),
    "langchain@1.0.1": ("import { tool } from 'langchain'", "(await tool(({ a }) => a + 'b', { name: 'x', description: 'y', schema: { type: 'object', properties: { a: { type: 'string' } } } }).invoke({ a: 'a' })) === 'ab'", 512),
    "lodash@4.17.21": ("import _ from 'lodash'", "_.sum([1, 2]) === 3"),
    "mathjs@15.0.0": ("import { evaluate as calculate } from 'mathjs'", "calculate('1 + 1') === 2"),
    "natural@8.0.1": ("import natural from 'natural'", "natural.PorterStemmer.stem('running') === 'run'", 1024),
    "openai@6.6.0": ("import OpenAI from 'openai'", "(await new OpenAI({ apiKey: 'x', maxRetries: 0 }).models.list().catch((error) => error.constructor.name)) === 'APIConnectionError'"),
    "playwright-core@1.56.1": ("import { chromium } from 'playwright-core'", "String(await chromium.launch().catch((error) => error.message)).includes(\"Executable doesn't exist\")"),
    "prettier@3.6.2": ("import * as prettier from 'prettier'", "(await prettier.format('a  =  1', { parser: 'babel' })) === 'a = 1;\\n'", 1024),
    "sharp@0.34.4": ("import sharp from 'sharp'", "(await sharp(await sharp({ create: { width: 4, height: 4, channels: 3, background: 'red' } }).png().toBuffer()).metadata()).width === 4"),
    "typescript@5.9.3": ("import ts from 'typescript'", "ts.transpileModule('const a: number = 1', {}).outputText.includes('a = 1')", 1024),
    "zod@4.1.12": ("import { z } from 'zod'", "z.string().safeParse('a').success"),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("pin", REAL)
async def test_a_real_package_is_loaded_and_used(service: Service, pin: str) -> None:
    imported, used, *memory = REAL[pin]
    code = f"{imported};\nexport const evaluate = async (inputs, outputs, trace) => Boolean({used});"
    limits = Limits(memory_mb=int(memory[0]) if memory else 256, timeout_s=60)
    result = await service.evaluate(Evaluator(code, JAVASCRIPT, packages=(pin,), limits=limits), Row())
    assert (result.score, result.error) == (1.0, None)


@pytest.mark.long
async def test_a_module_that_a_package_does_not_bring_is_missed_where_it_is_used(host: Service, index: Index) -> None:
    files = {
        "index.js": "exports.plain = () => 'plain'; exports.part = () => require('./part.js')",
        "part.js": "module.exports = require('no-such-part/deep')",
        "early.mjs": "import x from 'no-such-part'; export default x",
    }
    index.add_npm(npm_package("partly", files))
    good = SAYS.format("partly").replace("said: x", "said: x.plain()")
    assert (await value_of(host, good, "partly@1.0.0", language=JAVASCRIPT))["said"] == "plain"
    for code in (good.replace("plain()", "part()"), SAYS.format("partly/early.mjs")):
        error = (await evaluated(host, code, "partly@1.0.0", language=JAVASCRIPT)).error
        assert error is not None
        assert error.message.startswith("Cannot find module 'no-such-part"), error


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("pin", "call"), [("chalk@5.3.0", "chalk.red(outputs)"), ("@sindresorhus/slugify@2.2.1", "slugify(outputs)")]
)
async def test_a_real_es_module_that_is_required_is_answered_with_its_default(
    service: Service, pin: str, call: str
) -> None:
    package = pin.rpartition("@")[0]
    variable = package.rpartition("/")[2]
    code = f"const {variable} = require('{package}');\nmodule.exports.evaluate = (inputs, outputs) => {call}.length > 0"
    evaluator = Evaluator(code=code, language=Language.JAVASCRIPT, packages=(pin,))
    error = (await service.evaluate(evaluator, Row(outputs="a"))).error
    assert error is not None
    assert error.message == f"{call.partition('(')[0]} is not a function"
    assert error.hint == f"{package} is an ES module: import it, or use require('{package}').default"


@pytest.mark.long
async def test_a_package_too_large_to_bundle_says_which_limit_to_raise(host: Service, index: Index) -> None:
    large = {
        f"part{part}.js": "\n".join(
            f"exports.f{n} = function (a, b) {{ return a * {n} + b.x{n} }};" for n in range(15_000)
        )
        for part in range(4)
    }
    index.add_npm(
        npm_package("large", {"index.js": "".join(f"exports.p{n} = require('./part{n}');" for n in range(4)), **large})
    )
    code = "import large from 'large';\nexport const evaluate = (i, o, t) => large.p1.f2(3, { x2: 4 });"
    small = Evaluator(code, Language.JAVASCRIPT, packages=("large@1.0.0",), limits=Limits(memory_mb=96))
    error = (await host.evaluate(small, Row())).error
    assert error is not None
    assert error.code is ErrorCode.MEMORY_LIMIT, error
    assert "raise limits.memory_mb to " in (error.hint or ""), error
    enough = replace(small, limits=Limits(memory_mb=1024, timeout_s=60))
    scored = await host.evaluate(enough, Row())
    assert (scored.score, scored.error) == (10.0, None)
