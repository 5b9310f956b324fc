"""Rows share nothing, are answered in order, and do not affect other rows when they fail."""

import socket
import subprocess
import time

import pytest

from evaluator_host.engine.environments import toolchain
from tests.processes import command_of
from tests.runners.conftest import body
from tests.runners.javascript.conftest import built_runner

STATE = {
    "global": "globalThis.kept = (globalThis.kept ?? 0) + 1; return kept",
    "undeclared": "var n = typeof leaked === 'undefined' ? 1 : 2; leaked = 1; return n",
    "prototype": "const n = Object.prototype.polluted === undefined ? 1 : 2; Object.prototype.polluted = 1; return n",
    "builtin": "const n = Array.isArray(1) ? 2 : 1; Array.isArray = () => true; return n",
    "environment": "const n = process.env.LEFT ? 2 : 1; process.env.LEFT = 'x'; return n",
    "process": "const n = process.left ? 2 : 1; process.left = true; process.exitCode = 3; return n",
    "console": "const n = console.left ? 2 : 1; console.left = 1; console.log = null; return n",
    "Buffer prototype": "const n = Buffer.from('x').left ? 2 : 1; Buffer.prototype.left = true; return n",
    "Buffer static": "const n = Buffer.from.left ? 2 : 1; Buffer.from = Object.assign(() => {}, {left: 1}); return n",
    "URL prototype": "const n = 'left' in new URL('http://x.test') ? 2 : 1; URL.prototype.left = 1; return n",
    "module": "const fs = require('fs'); const n = fs.left ? 2 : 1; fs.left = 1; return n",
    "module function": "const path = require('path'); const n = path.join('a', 'b') === 'a/b' ? 1 : 2; path.join = () => 'x'; return n",
    "inner module": "const { posix } = require('path'); const n = posix.left ? 2 : 1; posix.left = 1; return n",
    "host prototype": "const p = Object.getPrototypeOf(Object.getPrototypeOf(new TextEncoder())); const n = p.left ? 2 : 1; p.left = 1; return n",
    "hidden state": "const h = require('http'); const n = h.globalAgent.left ? 2 : 1; h.globalAgent.left = 1; return n",
    "escaped": "const { constructor: Host } = Object.getPrototypeOf(Object.getPrototypeOf(new TextEncoder())); "
    "const { constructor: Its } = Host.keys({}); const n = Its === Array || Its.left ? 2 : 1; Its.left = 1; return n",
    "performance timeline": "const n = performance.getEntries().length + 1; performance.mark('left'); return n",
    "performance listeners": "let n = 1; performance.addEventListener('x', () => { throw n }); performance.dispatchEvent(new Event('y')); "
    "const { getEventListeners } = require('events'); n = getEventListeners(performance, 'x').length; return n",
    "performance observer": "const { performance: p, PerformanceObserver } = require('perf_hooks'); "
    "p.mark('x'); new PerformanceObserver(() => console.log('late')).observe({ entryTypes: ['mark'] }); "
    "return new Promise((done) => setTimeout(() => done(1), 5))",
    "default listeners": "const e = require('events'); const n = e.defaultMaxListeners === 10 ? 1 : 2; e.setMaxListeners(11); return n",
    "captured rejections": "const e = require('events'); const n = e.captureRejections ? 2 : 1; e.captureRejections = true; return n",
    "inspect options": "const u = require('util'); const n = u.inspect.defaultOptions.depth === 2 ? 1 : 2; "
    "u.inspect.defaultOptions = { depth: 50 }; return n",
    "inspected bytes": "const b = require('buffer'); const n = b.INSPECT_MAX_BYTES === 50 ? 1 : 2; b.INSPECT_MAX_BYTES = 51; return n",
    "stream default": "const s = require('stream'); const n = s.getDefaultHighWaterMark(true) === 16 ? 1 : 2; "
    "s.setDefaultHighWaterMark(true, 17); return n",
    "priority": "const o = require('os'); const n = o.getPriority() - 1; o.setPriority(2); return n === 1 ? 2 : 1",
    "timer": "globalThis.count = 0; setInterval(() => console.log('late'), 1); setTimeout(() => console.log('late'), 5); return 1",
}


@pytest.mark.sampled(27)
@pytest.mark.parametrize("kind", STATE)
def test_rows_share_nothing(scratch, kind):
    for _ in range(3):
        frame = scratch(STATE[kind])
        assert body(frame).get("value") == 1, body(frame)
        assert frame.header["logs"] is None
        time.sleep(0.01)


def test_module_state_is_new_for_every_row(load):
    runner = load("let rows = 0\nfunction evaluate(i, o, t) { return ++rows }")
    assert [body(runner.call({}, None, None))["value"] for _ in range(3)] == [1, 1, 1]


def test_rows_of_a_batch_share_their_module(load):
    runner = load("let rows = 0\nfunction evaluate(i, o, t) { return ++rows }")
    shares = ["a", "a", "a", None, "a", "b", "b"]
    for share in shares:
        runner.post({"args": [{}, None, None]}, share=share)
    assert [body(runner.receive())["value"] for _ in shares] == [1, 2, 3, 1, 1, 1, 2]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "used",
    [
        "Math.random()",
        "AT_LOAD",
        "crypto.randomUUID()",
        "crypto.getRandomValues(new Uint32Array(2)).join()",
        "require('crypto').randomBytes(8).toString('hex')",
        "require('crypto').randomInt(2 ** 47)",
    ],
)
def test_random_numbers_differ_from_row_to_row(load, used):
    runner = load(f"const AT_LOAD = Math.random()\nfunction evaluate(i, o, t) {{ return [{used}] }}")
    assert len({str(body(runner.call({}, None, None))["value"]) for _ in range(4)}) == 4


def test_a_generator_with_a_seed_starts_anew_in_each_row_and_goes_on_in_a_batch(load):
    runner = load("let x = 7\nfunction evaluate(i, o, t) { return x = x * 48271 % 2147483647 }")
    for share in (None, None, "a", "a"):
        runner.post({"args": [{}, None, None]}, share=share)
    first, second, third, fourth = (body(runner.receive())["value"] for _ in range(4))
    assert first == second == third != fourth


def test_answers_come_in_order_whatever_happens(load):
    runner = load("""function evaluate(i, o, t) {
      if (i.n % 5 === 1) for (;;);
      if (i.n % 5 === 2) throw new Error('no')
      if (i.n % 5 === 3) process.exit(1)
      console.log(i.n)
      return i.n
    }""")
    names = [runner.post({"args": [{"n": n}, None, None]}, timeout_s=0.3) for n in range(10)]
    frames = [runner.receive() for _ in names]
    assert [frame.header["id"] for frame in frames] == names
    codes = [body(frame).get("value", body(frame).get("error", {}).get("code")) for frame in frames]
    assert codes == [
        0,
        "timeout",
        "user_exception",
        "user_exception",
        4,
        5,
        "timeout",
        "user_exception",
        "user_exception",
        9,
    ]
    assert frames[4].header["logs"]["stdout"] == "4\n"


LOOPS = {
    "for": "for (;;);",
    "microtask": "const again = () => Promise.resolve().then(again); again(); return 1",
    "awaited": "return (async () => { for (;;) await null })()",
    "next tick": "const again = () => process.nextTick(again); again(); return 1",
    "regular expression": "return /^(a+)+$/.test('a'.repeat(40) + 'b')",
    "waiting": "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)",
    "timers": "return new Promise(() => setInterval(() => {}, 1))",
    "child": "require('child_process').execSync('sleep 60')",
    "thread": "const { Worker } = require('worker_threads'); new Worker('for (;;);', {eval: true}); for (;;);",
    "catch": "for (;;) { try { for (;;); } catch {} finally { continue } }",
}


@pytest.mark.sampled(12)
@pytest.mark.parametrize("kind", LOOPS)
def test_a_row_that_does_not_end_is_a_timeout_and_the_next_row_is_right(scratch, kind):
    frame = scratch("console.log('began');" + LOOPS[kind], timeout_s=0.3)
    error = body(frame)["error"]
    assert error["code"] == "timeout"
    assert frame.header["logs"] == {"stdout": "began\n", "stderr": "", "truncated": False}
    assert frame.header["run_ms"] >= 300
    assert body(scratch("return 1"))["value"] == 1


def test_a_promise_that_can_never_settle_is_reported_at_once(scratch):
    frame = scratch("return new Promise(() => {})", timeout_s=60)
    assert body(frame)["error"]["code"] == "timeout"
    assert "never settle" in body(frame)["error"]["message"]


SLOW_BUT_FINE = {
    "timer": "return new Promise(done => setTimeout(() => setTimeout(done, 20, 1), 20))",
    "immediate": "return new Promise(done => setImmediate(done, 1))",
    "promisified": "return require('util').promisify(setTimeout)(5, 1)",
    "timers/promises": "return require('timers/promises').setTimeout(5, 1)",
    "file": "return require('fs').promises.readFile('/proc/self/stat').then(() => 1)",
    "digest": "return crypto.subtle.digest('SHA-256', new Uint8Array(3)).then(() => 1)",
    "zlib": "return new Promise(done => require('zlib').gzip('x', () => done(1)))",
    "stream": "return new Response('1').text().then(Number)",
    "WebAssembly": "return WebAssembly.compile(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])).then(() => 1)",
    "child": "return new Promise(done => require('child_process').exec('echo 1', (e, out) => done(Number(out))))",
    "thread": "const { Worker } = require('worker_threads'); const w = new Worker(`require('worker_threads').parentPort.postMessage(1)`, {eval: true});\n"
    "return new Promise(done => { w.on('message', done); w.on('exit', () => done(1)) })",
    "message channel": "const { port1, port2 } = new MessageChannel(); return new Promise(done => { port2.onmessage = e => done(e.data); port1.postMessage(1) })",
    "events": "const { once, EventEmitter } = require('events'); const e = new EventEmitter(); setTimeout(() => e.emit('x', 1), 5); return once(e, 'x').then(v => v[0])",
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", SLOW_BUT_FINE)
def test_a_promise_that_settles_later_is_awaited(scratch, kind):
    frame = scratch(SLOW_BUT_FINE[kind])
    assert body(frame).get("value") == 1, body(frame)
    assert body(scratch("return 1"))["value"] == 1


def test_nothing_a_row_starts_survives_it(scratch):
    script = "const { spawn } = require('child_process'); const c = spawn('sleep', ['300'], {detached: %s, stdio: 'ignore'}); return c.pid"
    for detached in ("false", "true"):
        pid = body(scratch(script % detached))["value"]
        assert body(scratch("return 1"))["value"] == 1
        until = time.monotonic() + 10
        while command_of(pid) == b"sleep\0300\0" and time.monotonic() < until:
            time.sleep(0.01)
        assert command_of(pid) != b"sleep\0300\0"


def test_a_child_of_a_child_ends_too(scratch, tmp_path):
    """When a row ends, a child of its child ends too. The row's thread waits for the child's output, so the runner can
    end only if the child ends.
    """
    script = f"sleep 300 & echo $! > {tmp_path}/pid; wait"
    frame = scratch(f"require('child_process').execSync({script!r})", timeout_s=1)
    assert body(frame)["error"]["code"] == "timeout"
    assert body(scratch("return 1"))["value"] == 1
    assert command_of(int((tmp_path / "pid").read_text())) != b"sleep\0300\0"


def test_a_cancelled_row_ends_at_once(load):
    runner = load("function evaluate(i, o, t) { if (i.loop) for (;;); return 1 }")
    first = runner.post({"args": [{"loop": True}, None, None]}, timeout_s=60)
    second = runner.post({"args": [{}, None, None]})
    third = runner.post({"args": [{}, None, None]})
    time.sleep(0.2)
    runner.send({"type": "cancel", "id": second})
    runner.send({"type": "cancel", "id": first})
    runner.send({"type": "cancel", "id": "no such call"})
    frames = [runner.receive() for _ in range(3)]
    assert [frame.header["id"] for frame in frames] == [first, second, third]
    assert [body(frame).get("error", {}).get("code") for frame in frames] == ["cancelled", "cancelled", None]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("statement", "stdout", "stderr"),
    [
        ("console.log('a', 1, {b: [2]}, 'c')", "a 1 { b: [ 2 ] } c\n", ""),
        ("console.log('%s is %d', 'x', 5, 'more')", "x is 5 more\n", ""),
        ("console.info('i'); console.debug('d'); console.warn('w'); console.error('e')", "i\nd\n", "w\ne\n"),
        ("console.group('g'); console.log('in'); console.groupEnd(); console.log('out')", "g\n  in\nout\n", ""),
        (
            "console.dir({a: 1}); console.assert(false, 'no'); console.count()",
            "{ a: 1 }\ndefault: 1\n",
            "Assertion failed: no\n",
        ),
        ("process.stdout.write('raw'); process.stderr.write(Buffer.from('bytes'))", "raw", "bytes"),
        ("require('fs').writeSync(1, 'one'); require('fs').writeSync(2, 'two')", "one", "two"),
        ("require('fs').writeFileSync('/dev/stderr', 'two')", "", "two"),
        (
            "require('child_process').spawnSync('sh', ['-c', 'echo out; echo err >&2'], {stdio: 'inherit'})",
            "out\n",
            "err\n",
        ),
        ("require('child_process').execSync('echo err >&2')", "", "err\n"),
        ("require('fs').writeSync(1, Buffer.from([0xff, 0x41]))", "\ufffdA", ""),
        ("console.log('\\ud800')", "\ufffd\n", ""),
    ],
)
def test_printed_text_is_kept(scratch, statement, stdout, stderr):
    frame = scratch(statement + "; return 1")
    assert body(frame).get("value") == 1, body(frame)
    assert frame.header["logs"] == {"stdout": stdout, "stderr": stderr, "truncated": False}
    assert scratch("return 1").header["logs"] is None


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "flood",
    [
        "const x = Buffer.alloc(1 << 20, 'x'); for (let i = 0; i < 64; i++) require('fs').writeSync(1, x)",
        "const x = 'x'.repeat(1 << 20); for (let i = 0; i < 1024; i++) console.log(x)",
        "process.stdout.write('\\0'.repeat(1 << 20)); process.stderr.write('\\0'.repeat(1 << 20))",
        "for (let i = 0; i < 100000; i++) console.log('x'.repeat(100), {i})",
    ],
)
def test_a_flood_of_output_is_cut(load, flood):
    runner = load("function evaluate(i, o, t) {" + flood + "; return 1 }", limits={"log_kb": 256})
    frame = runner.call({}, None, None, timeout_s=60)
    assert body(frame).get("value") == 1, body(frame)
    logs = frame.header["logs"]
    assert logs["truncated"]
    assert 200_000 < len(logs["stdout"]) <= 256 * 1024
    assert frame.header["peak_memory_kb"] < 200_000


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize(
    "bomb",
    [
        "const a = []; for (;;) a.push({x: Math.random()})",
        "const a = []; for (;;) a.push(Buffer.alloc(1 << 22, 1))",
        "const a = []; for (;;) a.push('x'.repeat(1 << 16) + Math.random())",
    ],
)
def test_memory_without_end_is_its_own_error(load, bomb):
    # the thread of this code may take a long time to end
    code = "function evaluate(i, o, t) { if (i.calm) return 1; " + bomb + " }"
    runner = load(code, limits={"memory_mb": 96})
    frame = runner.call({}, None, None, timeout_s=60)
    assert body(frame)["error"]["code"] == "memory_limit"
    assert "96 MB" in body(frame)["error"]["message"]
    assert body(runner.call({"calm": True}, None, None))["value"] == 1


def test_memory_is_reported_for_the_row(load):
    runner = load("function evaluate(i, o, t) { if (i.mb) Buffer.alloc(i.mb << 20, 1).fill(2); return 1 }")
    small, large = (runner.call({"mb": mb}, None, None).header["peak_memory_kb"] for mb in (0, 120))
    assert large > small + 60_000


def test_a_full_disk_is_its_own_error(scratch):
    frame = scratch("require('fs').writeFileSync('/dev/full', 'x')")
    assert body(frame)["error"]["code"] == "disk_limit"


@pytest.mark.parametrize(
    "way", ["process.exit(0)", "process.exit()", "process.reallyExit(2)", "try { process.exit(1) } catch {} ; return 1"]
)
def test_exit_ends_the_row_only(scratch, way):
    frame = scratch("console.log('bye');" + way)
    error = body(frame)["error"]
    assert (error["code"], error["type"]) == ("user_exception", "process.exit")
    assert error["hint"]
    assert frame.header["logs"]["stdout"] == "bye\n"
    assert body(scratch("return 1"))["value"] == 1


def test_files_are_wiped_only_in_a_sandbox_of_its_own(scratch, tmp_path):
    kept = tmp_path / "kept"
    scratch(f"require('fs').writeFileSync({str(kept)!r}, 'x'); return 1")
    scratch("return 1")
    assert kept.read_text() == "x"


def test_the_end_of_the_channel_ends_the_runner(load):
    runner = load("function evaluate(i, o, t) { for (;;); }")
    runner.post({"args": [{}, None, None]}, timeout_s=600)
    time.sleep(0.3)
    runner.end(timeout_s=60)


def test_a_socket_as_channel_is_refused(esbuild):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ended = subprocess.run(
            [str(toolchain.node_path()), str(built_runner() / "runner.cjs")],
            stdin=theirs,
            stdout=theirs,
            stderr=subprocess.PIPE,
            timeout=20,
        )
    assert ended.returncode == 3
    assert b"pipes, not a socket" in ended.stderr


@pytest.mark.sampled(3)
@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff\0\0\0\0", b"\0\0\0\x02\0\0\0\0{}", b"\0\0\0\x05\0\0\0\0hello"])
def test_a_host_that_sends_no_frames_is_left(start, data):
    runner = start()
    runner.send_bytes(data)
    assert runner.process.wait(10) != 0
