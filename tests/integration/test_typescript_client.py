"""The TypeScript client is packed, installed as users install it, and calls a real host: its page's examples, and
errors.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.blocks import Block, blocks
from tests.node_client import MODULES, SOURCE, installed, node
from tests.server import FORKED, Server, free_port, new_home

EXAMPLES = [block for block in blocks(SOURCE / "README.md") if block.language in ("ts", "text")]
pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Node project outside the checkout, in which the packed client is installed."""
    return installed(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("server")
    with Server(log=home / "log", data_dir=new_home(home), environment=FORKED) as running:
        yield running


def run(project: Path, code: str, port: int, name: str = "program.ts") -> str:
    program = project / name
    program.write_text(code.replace("127.0.0.1:8710", f"127.0.0.1:{port}"))
    return node("--disable-warning=ExperimentalWarning", str(program), cwd=project)


def printed_after(block: Block) -> str | None:
    after = EXAMPLES[EXAMPLES.index(block) + 1 :][:1]
    return after[0].text if after and after[0].language == "text" else None


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "block", [block for block in EXAMPLES if block.language == "ts"], ids=lambda block: f"line {block.line}"
)
def test_an_example_of_its_page(block: Block, project: Path, server: Server) -> None:
    printed = run(project, block.text, server.port, "score.mjs")  # the page also uses this file name
    expected = printed_after(block)
    if expected is None:
        assert "# fail 0" in printed or "fail 0" in printed, printed
    else:
        assert printed == expected
    if "scores.csv" in block.text:
        assert len((project / "scores.csv").read_text().splitlines()) == 3


@pytest.mark.long
def test_its_types_fit_the_examples(project: Path) -> None:
    (project / "types.d.ts").write_text(
        'declare module "node:test" { export function test(name: string, run: () => Promise<void>): void }\n'
        "type Data = string | Uint8Array; type Some = Data | Iterable<Data> | AsyncIterable<Data>\n"
        'declare module "node:fs/promises" { export function writeFile(file: string, data: Some): Promise<void> }\n'
        "declare const process: { exitCode: number }\n"
    )
    for number, block in enumerate(block for block in EXAMPLES if block.language == "ts"):
        (project / f"example{number}.ts").write_text(block.text)
    files = sorted(path.name for path in project.glob("example*.ts"))
    options = [
        "--noEmit",
        "--strict",
        "--target",
        "es2023",
        "--lib",
        "es2023,dom",
        "--module",
        "nodenext",
    ]
    node(str(MODULES / "typescript/bin/tsc"), *options, "types.d.ts", *files, cwd=project)


def test_a_browser_can_bundle_it(project: Path) -> None:
    (project / "page.js").write_text(
        'import { EvaluatorHost } from "@evaluator-host/client"; globalThis.host = new EvaluatorHost();'
    )
    node(
        str(MODULES / "esbuild/bin/esbuild"),
        "page.js",
        "--bundle",
        "--platform=browser",
        "--outfile=bundle.js",
        cwd=project,
    )
    assert "evaluate/batch" in (project / "bundle.js").read_text()


def test_every_verb(project: Path, server: Server) -> None:
    printed = run(project, VERBS, server.port)
    assert printed.split() == [
        "ready",
        "true",
        "1",
        "2",
        "0",
        "exact",
        "exact,exact",
        "2",
        "2,1",
        "completed",
        "1",
        "improved",
        "1",
        "gone",
    ]


OUTPUTS = """
import { EvaluatorHost, HostError } from "@evaluator-host/client";
const host = new EvaluatorHost({ url: "http://127.0.0.1:8710" });
const code = "def evaluate(inputs, outputs, trace):\\n    return 1.0 if outputs == inputs['expected'] else 0.0";
const rows = Array.from({ length: 500 }, (_, n) => ({ id: n, question: `q${n}`, expected: `a${n}`, reply: `a${n % 250}` }));
await host.datasets.upload("support", rows);
try {
  await host.jobs.create([{ code }], "support");
} catch (error) {
  console.log(error instanceof HostError && error.status, error.message.split("\\n")[0]);
}
const inputs = rows.map((row) => ({ inputs: row }));
await host.evaluateBatch({ code }, inputs).catch((error) => console.log(error.status));
console.log((await host.evaluateBatch({ code }, inputs.slice(0, 2), { outputs: "none" })).summary.doubt !== null);
const job = await host.jobs.create([{ code }], "support", { mapping: { outputs: "reply" } });
console.log((await host.jobs.wait(job.id)).scores[0].mean);
"""


@pytest.mark.long
def test_a_job_without_the_outputs_that_its_code_reads_is_refused(project: Path, server: Server) -> None:
    told = "no column is mapped to outputs; support has id, question, expected, reply; did you mean outputs=reply?"
    assert run(project, OUTPUTS, server.port) == f"422 {told}\n422\ntrue\n0.5\n"


VERBS = """
import { EvaluatorHost, HostError, isFinal } from "@evaluator-host/client";
const host = new EvaluatorHost({ url: "http://127.0.0.1:8710" });
await host.ready();
console.log("ready", (await host.info()).version.length > 0);
const code = "def evaluate(inputs, outputs, trace):\\n    return outputs == inputs['gold']";
const batch = await host.evaluateBatch({ code }, [{ inputs: { gold: 1 }, outputs: 1 }, { inputs: { gold: 1 }, outputs: 2 }], { isolation: "batch" });
console.log(batch.summary.pass_rate === 0.5 ? 1 : batch, batch.results.length, (await host.check({ code })).problems.length);
await host.evaluators.create("exact", { code }, { description: "first", tags: ["tone"], cases: [{ inputs: { gold: 1 }, outputs: 1, expect: 1 }], require_cases: true });
await host.evaluators.update("exact", { code: code + "  # again" }, { message: "again" });
const [tagged] = await host.evaluators.list({ tag: "tone" });
if (tagged.message !== "again" || (await host.evaluators.list({ tag: "other" })).length > 0) throw new Error(JSON.stringify(tagged));
console.log((await host.evaluators.get("exact", 1)).name, (await host.evaluators.versions("exact")).map(({ name }) => name).join());
async function* rows() { for (const answer of [1, 2]) yield { gold: 1, answer }; }
console.log((await host.datasets.upload("ones", rows())).rows);
const back = []; for await (const row of host.datasets.rows("ones")) back.unshift(row.answer);
console.log(back.join());
const options = { mapping: { outputs: "answer" }, config: { parallelism: 1 }, idempotencyKey: "one" };
const job = await host.jobs.create(["exact"], "ones", options);
const twice = await host.jobs.create(["exact"], "ones", options);
const seen = []; const ended = await host.jobs.wait(twice.id, ({ status }) => seen.push(status));
console.log(job.id === twice.id && isFinal(ended.status) ? ended.status : [job, twice], (await host.jobs.failures(job.id)).length + 1);
const better = await host.jobs.create([{ code: "def evaluate(inputs, outputs, trace):\\n    return 1.0" }], "ones", { mapping: { outputs: "answer" } });
await host.jobs.wait(better.id);
await host.jobs.rename(better.id, "all right");
const [found, ...others] = await host.jobs.list({ search: "all right" });
if (found.title !== "all right" || others.length > 0) throw new Error(JSON.stringify([found, ...others]));
if ((await host.request("GET", "/v1/jobs", { query: { search: "all right" } }))[0].id !== better.id) throw new Error("request");
const [groups] = await host.jobs.groups(job.id, "answer");
if (groups.groups.map(({ value, mean }) => `${value}: ${mean}`).join() !== "1: 1,2: 0") throw new Error(JSON.stringify(groups));
console.log("improved", await host.jobs.row(job.id, 0).then(({ results }) => results.length));
const chunks = []; for await (const chunk of await host.jobs.download(job.id, "csv")) chunks.push(chunk);
if (!Buffer.concat(chunks).toString().startsWith("index,evaluator")) throw new Error(Buffer.concat(chunks).toString());
await host.jobs.delete(job.id);
await host.datasets.delete("ones");
try { await host.jobs.get(job.id); } catch (error) { console.log(error instanceof HostError && error.status === 404 ? "gone" : error); }
"""


ASSERTIONS = """
import { EvaluatorHost } from "@evaluator-host/client";
import { assertScore } from "@evaluator-host/client/testing";
const host = new EvaluatorHost({ url: "http://127.0.0.1:8710" });
const code = "def evaluate(inputs, outputs, trace):\\n    return outputs";
for (const expected of [{ atLeast: NaN }, { atMost: NaN }, { equal: NaN }, { atLeast: 0.1 + 0.2, atMost: 0.3, equal: 0.3 }]) {
  await assertScore(host, { code }, { outputs: 0.3 }, expected).then(() => console.log("passed"), (error) => console.log(error.message));
}
"""


@pytest.mark.long
def test_no_score_meets_a_bound_that_is_not_a_number(project: Path, server: Server) -> None:
    printed = run(project, ASSERTIONS, server.port).splitlines()
    assert printed == [*(f"the score is 0.3, {how} NaN" for how in ("below", "above", "not")), "passed"]


def test_an_unreachable_host_has_its_own_error(project: Path) -> None:
    code = """
import { EvaluatorHost, HostUnreachable } from "@evaluator-host/client";
try { await new EvaluatorHost({ url: "http://127.0.0.1:8710" }).info(); } catch (error) {
  console.log(error instanceof HostUnreachable, error.message.includes("evaluator-host serve"));
}
"""
    assert run(project, code, free_port()) == "true true\n"


@pytest.mark.long
def test_a_busy_host_is_asked_again(project: Path) -> None:
    code = """
import { createServer } from "node:http";
import { EvaluatorHost } from "@evaluator-host/client";
let asked = 0;
const server = createServer((request, response) => {
  asked += 1;
  if (asked < 3) response.writeHead(429, { "Retry-After": "0", "Content-Type": "application/problem+json" }).end('{"code":"busy","detail":"full"}');
  else response.end('{"version": "9"}');
}).listen(0, "127.0.0.1", async () => {
  const host = new EvaluatorHost({ url: `http://127.0.0.1:${server.address().port}` });
  console.log((await host.info()).version, asked);
  server.close();
});
"""
    assert run(project, code, 0) == "9 3\n"


EXACT = """
import { EvaluatorHost } from "@evaluator-host/client";
const url = "http://127.0.0.1:8710";
const code = "def evaluate(inputs, outputs, trace):\\n    return {'score': 1, 'same': outputs, 'text': str(outputs), 'more': [2**60 + 1, '9007199254740993', 0.1234567890123456789, 1e22, -5]}";
const warned = [];
console.warn = (text) => warned.push(text);
for (const integers of ["number", "bigint", "text"]) {
  const host = new EvaluatorHost({ url, integers });
  for (const outputs of [9007199254740993n, '"#9007199254740993\\n']) {
    const { value } = await host.evaluate({ code }, { outputs });
    console.log(integers, value.same === outputs, typeof value.same, value.text === String(outputs), ...value.more.map((one) => typeof one + " " + one));
  }
}
console.log(warned.length, warned[0].includes("the integer 9007199254740993,"), warned[0].includes('integers: "bigint"'));
const host = new EvaluatorHost({ url, integers: "bigint" });
await host.datasets.upload("bigints", [{ id: 2n ** 64n + 1n }, { id: 1 }]);
for await (const row of host.datasets.rows("bigints")) console.log(row.id);
for (const outputs of [NaN, [-Infinity]]) await host.evaluate({ code }, { outputs }).catch((error) => console.log(error.name, error.message));
"""
MORE = "string 9007199254740993 number 0.12345678901234568 number 1e+22 number -5"


def test_integers_are_exact_or_said_to_be_rounded(project: Path, server: Server) -> None:
    printed = run(project, EXACT, server.port).splitlines()
    assert printed == [
        f"number false number true number 1152921504606847000 {MORE}",
        f"number true string true number 1152921504606847000 {MORE}",
        f"bigint true bigint true bigint 1152921504606846977 {MORE}",
        f"bigint true string true bigint 1152921504606846977 {MORE}",
        f"text false string true string 1152921504606846977 {MORE}",
        f"text true string true string 1152921504606846977 {MORE}",
        "1 true true",
        "18446744073709551617n",
        "1",
        'TypeError the number at "outputs" is NaN, which JSON does not have; send null or text in its place',
        'TypeError the number at "0" is -Infinity, which JSON does not have; send null or text in its place',
    ]


FALSE_FILTERS = """
import { EvaluatorHost } from "@evaluator-host/client";
const asked: string[] = [];
const answer = async (url: unknown, init: unknown) => {
  asked.push(String(url).split("?")[1] ?? "none", (init as { body?: string }).body ?? "");
  return new Response('{"rows": [], "next_cursor": null}');
};
const host = new EvaluatorHost({ fetch: answer });
for await (const row of host.jobs.rows("j", { passed: false, min_score: 0, row: [3, 17], text: "", error: undefined })) console.log(row);
await host.evaluators.delete("e");
await host.evaluateBatch("e", [], { outputs: "" as "none" });
console.log(asked.join("\\n"));
"""


@pytest.mark.long
def test_only_undefined_is_left_out_of_a_request(project: Path) -> None:
    rows, _, delete, _, _, body = run(project, FALSE_FILTERS, 0).splitlines()
    assert rows == "passed=false&min_score=0&row=3&row=17&text=&limit=500"
    assert delete == "force=false"
    assert '"outputs":""' in body
