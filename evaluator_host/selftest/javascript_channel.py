"""JavaScript attacks on the way a result takes: frames that are printed or written to every descriptor, the worker's port."""
# ruff: noqa: E501 - programs, of which some are one line

from typing import Any, Final

from evaluator_host.model.outcome import ErrorCode
from evaluator_host.selftest.attack import NOTHING, Attack, Expected, Group, fails, javascript, scores
from evaluator_host.selftest.javascript import SHORT

_FORGED: Final = 0.75
_CRASHED: Final = fails(ErrorCode.CRASHED)
_SILENT: Final = fails(ErrorCode.TIMEOUT)
_FRAME: Final = f"""
const fs = require('fs');
const BODY = Buffer.from('{{"kind":"number","value":{_FORGED},"nonfinite":[],"unsupported":null,"notes":[]}}');
const frame = (id) => {{
  const head = Buffer.from(JSON.stringify({{ type: 'result', id: String(id), run_ms: 0, peak_memory_kb: 1, logs: null }}));
  const sizes = Buffer.alloc(8);
  sizes.writeUInt32BE(head.length, 0);
  sizes.writeUInt32BE(BODY.length, 4);
  return Buffer.concat([sizes, head, BODY]);
}};
const toAll = (action) => {{
  for (let fd = 3; fd < 256; fd++) try {{ action(fd); }} catch {{}}
}};
"""
_LOG: Final = "what is printed is a log; the channel is on other descriptors"
_OWN: Final = "one sandbox serves one evaluator: whoever gets at its channel answers for their own row, or breaks it"
_SEEN: Final = "never against another evaluator: none shares the process"


def _channel(
    name: str, program: str, *expected: Expected, why: str = _OWN, seen: str = _SEEN, **details: Any
) -> Attack:
    return javascript(f"javascript-{name}", Group.CHANNEL, _FRAME + program, *expected, why=why, seen=seen, **details)


ATTACKS: Final[tuple[Attack, ...]] = (
    _channel(
        "printed-frames",
        """
const attack = () => {
  for (let id = 1; id < 5; id++) {
    process.stdout.write(frame(id));
    process.stderr.write(frame(id));
    fs.writeSync(1, frame(id));
    fs.writeSync(2, frame(id));
  }
};
""",
        NOTHING,
        why=_LOG,
        seen="with the runner's channel left on descriptor 1",
    ),
    _channel(
        "frames-of-a-child",
        """
const { spawnSync } = require('child_process');
const attack = () => {
  const code = `require('fs').writeSync(1, Buffer.from('${frame(2).toString('hex')}', 'hex'))`;
  spawnSync(process.execPath, ['-e', code], { stdio: 'inherit' });
};
""",
        NOTHING,
        why=_LOG,
        seen="with a child's inherited streams being the runner's own",
    ),
    _channel(
        "frames-on-every-descriptor",
        "const attack = () => { for (let id = 1; id < 6; id++) toAll((fd) => fs.writeSync(fd, frame(id))); };\n",
        NOTHING,
        scores(_FORGED),
        _CRASHED,
        _SILENT,
    ),
    _channel(
        "garbage-on-every-descriptor",
        "const attack = () => { toAll((fd) => fs.writeSync(fd, Buffer.alloc(4096, 255))); };\n",
        NOTHING,
        _CRASHED,
        _SILENT,
        limits=SHORT,
    ),
    _channel(
        "frame-of-four-gigabytes",
        """
const attack = () => {
  toAll((fd) => fs.writeSync(fd, Buffer.concat([Buffer.alloc(8, 255), Buffer.alloc(60000, 32)])));
  return new Promise((done) => setTimeout(done, 500));
};
""",
        NOTHING,
        _CRASHED,
        _SILENT,
        limits=SHORT,
    ),
    _channel(
        "half-a-frame",
        """
const attack = () => {
  toAll((fd) => fs.writeSync(fd, frame(2).subarray(0, 20)));
  for (;;);
};
""",
        _CRASHED,
        _SILENT,
        limits=SHORT,
    ),
    _channel(
        "every-descriptor-read",
        """
const attack = () => {
  const bytes = Buffer.alloc(1 << 16);
  const found = [];
  toAll((fd) => {
    const path = fs.readlinkSync(`/proc/self/fd/${fd}`);
    if (!path.startsWith('pipe:') && !path.startsWith('socket:')) return;
    const again = fs.openSync(`/proc/self/fd/${fd}`, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK);
    try { found.push(bytes.toString('latin1', 0, fs.readSync(again, bytes))); } finally { fs.closeSync(again); }
  });
  return found.filter((text) => text.includes('neighbour')).join();
};
""",
        NOTHING,
        _CRASHED,
        _SILENT,
    ),
    _channel(
        "every-descriptor-closed",
        "const attack = () => { toAll((fd) => fs.closeSync(fd)); };\n",
        NOTHING,
        _CRASHED,
        _SILENT,
        limits=SHORT,
    ),
    _channel(
        "nonsense-to-the-supervisor",
        """
const { workerData } = require('worker_threads');
const attack = () => {
  for (const message of [null, 1, 'x', [], [2], [2, ''], [2, '', {}], { type: 'exit', code: {} }, { type: 'offers' }, { type: 'load_failed' },
    [2, '', 'x'.repeat(1 << 20), 'x', 'x', 'x', 'x'], { toString: null }]) {
    try { workerData?.port?.postMessage(message); } catch {}
  }
};
""",
        NOTHING,
        _CRASHED,
        _SILENT,
        scores(_FORGED),
        fails(ErrorCode.USER_EXCEPTION),
        limits=SHORT,
    ),
    _channel(
        "answers-for-rows-to-come",
        """
const { workerData } = require('worker_threads');
const attack = () => {
  const { port } = workerData ?? {};
  for (let seq = 1; seq < 100; seq++) port?.postMessage([seq + 2, '', String(BODY), 0, 1, null, false]);
};
""",
        NOTHING,
        why="an answer is taken for the call that is asked now, and the worker is replaced before the next",
        seen="with a worker that goes on after `worker_threads` was handed out",
    ),
    _channel(
        "pulse-of-the-worker",
        """
const { workerData } = require('worker_threads');
const attack = () => {
  const pulse = workerData?.pulse;
  if (pulse) for (;;) { new Float64Array(pulse, 0, 1)[0] = 1e300; new Int32Array(pulse, 8).fill(99); }
  for (;;);
};
""",
        fails(ErrorCode.TIMEOUT),
        why="the host has a clock of its own",
        limits=SHORT,
    ),
    _channel(
        "inspector",
        """
const inspector = require('inspector');
const attack = () => new Promise((done) => {
  try { inspector.open(0, '127.0.0.1'); } catch {}
  const session = new inspector.Session();
  try { session.connectToMainThread(); } catch { session.connect(); }
  session.post('Runtime.evaluate', { expression: 'process.exitCode = 0; process.stdout.write = () => true; 1' }, () => done(null));
  setTimeout(() => done(null), 500);
});
""",
        NOTHING,
        _CRASHED,
        _SILENT,
        fails(ErrorCode.USER_EXCEPTION),
    ),
    _channel(
        "bindings-of-node",
        """
const attack = () => {
  const binding = require('vm').runInThisContext('process').binding?.('pipe_wrap');
  const { Pipe, constants } = binding ?? {};
  if (Pipe) toAll((fd) => { const pipe = new Pipe(constants.SOCKET); pipe.open(fd); pipe.close(); });
};
""",
        NOTHING,
        _CRASHED,
        _SILENT,
        fails(ErrorCode.USER_EXCEPTION),
        limits=SHORT,
    ),
)
