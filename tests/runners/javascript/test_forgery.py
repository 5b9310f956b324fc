"""Code tries to answer in place of the runner: at most the code's own row fails."""

import json

import pytest

from evaluator_host.engine.sandbox import protocol
from tests.runners.conftest import RunnerEnded, body

EVERY = "const fs = require('fs')\nfunction evaluate(a, b, c) { for (let fd = 0; fd < 256; fd++) try { fs.%s } catch {}; return 0.25 }"
FORGED = json.dumps({"kind": "number", "value": 1, "nonfinite": [], "unsupported": None, "notes": []})


def frame_bytes(call: str) -> str:
    data = protocol.encode(
        {"type": "result", "id": call, "run_ms": 0, "peak_memory_kb": 1, "logs": None}, FORGED.encode()
    )
    return f"Buffer.from('{data.hex()}', 'hex')"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "way",
    [
        "console.log(frame.toString('latin1'))",
        "process.stdout.write(frame); process.stderr.write(frame)",
        "require('fs').writeSync(1, frame); require('fs').writeSync(2, frame)",
        "require('child_process').spawnSync('cat', {input: frame, stdio: ['pipe', 'inherit', 'inherit']})",
        "require('child_process').execSync('cat >&2', {input: frame})",
        "process.on('exit', () => require('fs').writeSync(1, frame))",
    ],
)
@pytest.mark.slow
def test_a_printed_frame_is_output(scratch, way):
    answer = scratch(f"const frame = {frame_bytes('call-1')}; {way}; return 0.25")
    assert body(answer)["value"] == 0.25


def test_writing_to_every_descriptor_costs_at_most_its_own_row(load):
    """Writing to every descriptor costs at most the row that does it. A row's code can write to the sandbox's channel,
    so the host may read bytes that are not frames, or a forged score for this row.
    """
    try:
        answer = load(EVERY % "writeSync(fd, 'garbage')").call({}, None, None)
    except (protocol.ProtocolError, RunnerEnded):
        pass  # after such an error, a host would destroy the sandbox
    else:
        assert body(answer).get("value") == 0.25


def test_closing_every_descriptor_costs_at_most_the_sandbox(load):
    try:
        answer = load(EVERY % "closeSync(fd)").call({}, None, None, timeout_s=1)
    except (RunnerEnded, TimeoutError):
        return
    assert body(answer).get("value", 0.25) == 0.25


ESCAPES = [
    "this.constructor.constructor('return process')().mainModule",
    "globalThis.constructor.constructor('return typeof workerData')() === 'undefined' ? undefined : 1",
    "console.log.constructor('return process')().mainModule",
    "console.constructor.constructor('return typeof port')() === 'undefined' ? undefined : 1",
    "require.constructor('return typeof port')() === 'undefined' ? undefined : 1",
    "setTimeout.constructor('return process.binding')()",
    "process.constructor.constructor('return process')().binding",
    "process.on.constructor('return process')().binding",
    "(() => { try { null.x } catch (e) { return e.constructor.constructor('return process')().binding } })()",
    "(() => { try { (function f() { f() })() } catch (e) { return e.constructor.constructor('return process')().binding } })()",
    "inputs.constructor.constructor('return process')().binding",
    "(() => { try { return new URL('http://x.test').constructor.constructor('return process')() } catch {} })()",
    "(() => { try { return Buffer.from.constructor('return process')() } catch {} })()",
    "(() => { try { return Object.getPrototypeOf(require('fs').promises.readFile).constructor('return process')() } catch {} })()",
    "(function () { return arguments.callee.caller })()?.caller?.caller ?? undefined",
    "(() => { Error.prepareStackTrace = (e, frames) => frames.map(f => f.getFunction()).filter(Boolean).find(f => f.constructor !== Function); return new Error().stack })()",
    "(() => { Error.prepareStackTrace = (e, frames) => frames.map(f => f.getThis()).find(f => f && f !== globalThis && !(f instanceof Object)); return new Error().stack })()",
]


@pytest.mark.parametrize("escape", ESCAPES)
def test_the_language_leads_nowhere_but_to_the_row_itself(scratch, escape):
    answer = body(scratch(f"return {escape}"))
    assert answer.get("kind") == "missing", answer


@pytest.mark.long
def test_a_row_that_reached_the_runners_realm_leaves_no_trace(scratch):
    reach = "const realm = require('vm').runInThisContext('globalThis');"
    for spoil in (
        "realm.JSON.parse = () => 1",
        "realm.Object.prototype.score = 1",
        "realm.Promise.prototype.then = () => {}",
        "realm.process.removeAllListeners()",
        "realm.process.exit = () => {}",
        "realm.setImmediate = () => {}",
        "realm.process.env.LEFT = 'x'",
    ):
        scratch(f"{reach} {spoil}; return 1")
        answer = scratch(
            "const r = {}; return [r.score === undefined, JSON.parse('2'), process.env.LEFT === undefined]"
        )
        assert body(answer)["value"] == [True, 2, True]


def test_an_entry_replaced_by_the_module_is_its_own_affair(load):
    runner = load(
        "globalThis.__evaluator_host_entries__({ evaluate: () => 0.5 })\nfunction evaluate(a, b, c) { return 0.25 }"
    )
    assert body(runner.call({}, None, None))["value"] == 0.25


@pytest.mark.long
@pytest.mark.slow
def test_a_value_that_is_not_a_bundle_is_ignored(start):
    for bundle in ({"version": 2}, {"version": 1, "text": 5}, "x", [1]):
        runner = start()
        assert (
            runner.load("function evaluate(a, b, c) { return 0.5 }", language="javascript", bundle=bundle).type
            == "loaded"
        )
        assert body(runner.call({}, None, None))["value"] == 0.5
