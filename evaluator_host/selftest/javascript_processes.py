"""JavaScript attacks by processes and threads: too many, deaf ones, those that outlive a row, and the runner's end."""
# ruff: noqa: E501 - programs, of which some are one line

from dataclasses import replace
from typing import Any, Final

from evaluator_host.model.outcome import ErrorCode
from evaluator_host.selftest.attack import NOTHING, SMALL, Attack, Expected, Group, Guard, fails, javascript
from evaluator_host.selftest.javascript import SHORT, STILL_HANGS

_CHILD: Final = """
const { spawn, spawnSync } = require('child_process');
const fs = require('fs');
const node = (...code) => [process.execPath, ['-e', ...code]];
"""
_GONE: Final = "whatever a row started is killed when it ends, and the sandbox's end ends the rest"
_CRASHED: Final = fails(ErrorCode.CRASHED)


def _processes(name: str, program: str, *expected: Expected, why: str, **details: Any) -> Attack:
    return javascript(f"javascript-{name}", Group.PROCESSES, _CHILD + program, *expected, why=why, **details)


_LEFT: Final = """
const left = () => fs.readdirSync('/proc').filter((name) => /^\\d+$/.test(name)).filter((pid) => {
  try { return fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('stays-behind'); } catch { return false; }
}).join();
"""

ATTACKS: Final[tuple[Attack, ...]] = (
    _processes(
        "child-that-stays",
        """
const attack = (inputs) => {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)', 'stays-behind', inputs.mark], { detached: true, stdio: 'ignore' });
  child.unref();
  return new Promise((done) => setTimeout(done, 200));
};
"""
        + _LEFT,
        why=_GONE,
        without=Guard.CLEANING,
    ),
    _processes(
        "deaf-grandchild-that-stays",
        """
const CODE = "for (const s of ['SIGTERM', 'SIGHUP', 'SIGINT']) process.on(s, () => {}); setInterval(() => {}, 1000)";
const attack = (inputs) => {
  const nested = `require('child_process').spawn(process.execPath, ['-e', ${JSON.stringify(CODE)}, 'stays-behind', '${inputs.mark}'], {detached: true, stdio: 'ignore'}).unref()`;
  spawnSync(...node(nested));
};
"""
        + _LEFT,
        why=_GONE,
        without=Guard.CLEANING,
    ),
    _processes(
        "fork-bomb",
        """
const attack = () => {
  const found = [];
  for (let n = 0; n < 64; n++) {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
    child.on('error', () => {});
    if (child.pid) found.push(child.pid);
  }
  return found.length >= 64;
};
""",
        NOTHING,
        fails(ErrorCode.PROCESS_LIMIT, ErrorCode.MEMORY_LIMIT, ErrorCode.CRASHED),
        why="processes and threads together are limited, and so is their memory",
        limits=replace(SMALL, processes=16, timeout_s=20.0),
        without=(Guard.PROCESSES, Guard.MEMORY),
    ),
    _processes(
        "thread-bomb",
        """
const { Worker } = require('worker_threads');
const attack = () => new Promise((done) => {
  let up = 0;
  for (let n = 0; n < 64; n++) {
    const worker = new Worker('setInterval(() => {}, 1000)', { eval: true, stdout: true, stderr: true });
    worker.on('online', () => { if (++up >= 64) done('64 threads'); });
    worker.on('error', () => done(null));
  }
});
""",
        NOTHING,
        fails(
            ErrorCode.PROCESS_LIMIT,
            ErrorCode.MEMORY_LIMIT,
            ErrorCode.CRASHED,
            ErrorCode.TIMEOUT,
            ErrorCode.USER_EXCEPTION,
        ),
        why="processes and threads together are limited, and so is their memory",
        limits=replace(SMALL, processes=16, memory_mb=512, timeout_s=20.0),
        without=(Guard.PROCESSES, Guard.MEMORY),
    ),
    _processes(
        "exit",
        "const attack = () => process.exit(0);\n",
        fails(ErrorCode.USER_EXCEPTION),
        why="an exit is no result",
        without=Guard.VERDICT,
    ),
    _processes(
        "exit-in-a-later-turn",
        "const attack = () => new Promise(() => setTimeout(() => process.exit(0), 20));\n",
        fails(ErrorCode.USER_EXCEPTION),
        why="an exit is no result",
        without=Guard.VERDICT,
    ),
    _processes(
        "abort",
        "const attack = () => process.abort();\n",
        fails(ErrorCode.USER_EXCEPTION, ErrorCode.CRASHED),
        why="an abort is no result",
        without=Guard.VERDICT,
    ),
    _processes(
        "own-death",
        "const attack = () => { process.kill(process.pid, 'SIGKILL'); for (;;); };\n",
        _CRASHED,
        STILL_HANGS,  # process 1 of a container, which the kernel shields from itself
        limits=SHORT,
        why="the host takes the end of a sandbox for a failure",
        without=Guard.VERDICT,
    ),
    _processes(
        "everybodys-death",
        "const attack = () => { try { process.kill(-1, 'SIGKILL'); } catch {} };\n",
        NOTHING,
        _CRASHED,
        why="there is nobody in its process namespace but its own",
        seen="never: the process namespace cannot be left out on either backend",
    ),
    _processes(
        "stopped-runner",
        "const attack = () => { process.kill(process.pid, 'SIGSTOP'); for (;;); };\n",
        STILL_HANGS,
        why="the host ends a sandbox that does not answer within limit and grace",
        limits=SHORT,
        without=Guard.VERDICT,
    ),
    _processes(
        "signals-to-the-host",
        """
const attack = (inputs) => {
  try { process.kill(inputs.pid, 0); } catch { return null; }
  return inputs.pid > 100 && `process ${inputs.pid} can be signalled`;
};
""",
        why="the host's processes have no number in the sandbox",
        seen="never: the process namespace cannot be left out on either backend",
    ),
    _processes(
        "cluster",
        """
const cluster = require('cluster');
const attack = (inputs) => new Promise((done) => {
  cluster.setupPrimary?.({ exec: '/proc/self/cmdline', silent: true });
  const worker = cluster.fork({ MARK: inputs.mark });
  worker.on('error', () => done(null));
  worker.on('exit', () => done(null));
});
""",
        why="a worker of a cluster is a child like any other",
        seen="never: it gains nothing",
    ),
    _processes(
        "child-reads-the-host",
        """
const attack = (inputs) => {
  const code = `console.log(require('fs').readFileSync(${JSON.stringify(inputs.file)}, 'utf8'))`;
  return spawnSync(...node(code)).stdout?.toString();
};
""",
        why="a child is inside the same sandbox",
        without=Guard.ROOT,
    ),
)
