"""JavaScript attacks by output: floods, closed streams, bytes that are no text."""
# ruff: noqa: E501 - programs, of which some are one line

from typing import Any, Final

from evaluator_host.model.outcome import ErrorCode
from evaluator_host.selftest.attack import NOTHING, Attack, Expected, Group, Guard, fails, javascript, scores

_KEPT: Final = "the runner keeps `log_kb` of a stream and reads on"


def _output(name: str, program: str, *expected: Expected, why: str = _KEPT, **details: Any) -> Attack:
    return javascript(
        f"javascript-{name}", Group.OUTPUT, program, *(expected or (scores(0.0, truncated=True),)), why=why, **details
    )


ATTACKS: Final[tuple[Attack, ...]] = (
    _output(
        "flood-of-prints",
        "const attack = () => { for (let n = 0; n < 20000; n++) console.log('x'.repeat(1000)); };\n",
        without=Guard.LOGS,
    ),
    _output(
        "flood-of-errors",
        "const attack = () => { for (let n = 0; n < 20000; n++) console.error('x'.repeat(1000)); };\n",
        without=Guard.LOGS,
    ),
    _output("one-long-print", "const attack = () => { console.log('x'.repeat(1 << 23)); };\n", without=Guard.LOGS),
    _output(
        "flood-past-the-console",
        """
const fs = require('fs');
const attack = () => { for (let n = 0; n < 300; n++) for (const fd of [1, 2]) fs.writeSync(fd, Buffer.alloc(1 << 16, 120)); };
""",
        NOTHING,
        fails(ErrorCode.DISK_LIMIT),
        without=Guard.LOGS,
    ),
    _output(
        "flood-of-a-child",
        """
const { spawnSync } = require('child_process');
const CODE = "const b = Buffer.alloc(1 << 16, 120); for (let n = 0; n < 1000; n++) require('fs').writeSync(1, b)";
const attack = () => { spawnSync(process.execPath, ['-e', CODE], { stdio: 'inherit' }); };
""",
        NOTHING,
        fails(ErrorCode.DISK_LIMIT),
        why="a child writes to a file of limited size, of which the runner keeps `log_kb`",
        without=Guard.LOGS,
    ),
    _output(
        "closed-streams",
        """
const fs = require('fs');
const attack = () => {
  for (const fd of [0, 1, 2]) fs.closeSync(fd);
  for (const name of ['/tmp/a', '/tmp/b', '/tmp/c']) fs.openSync(name, 'w');
  console.log('to nobody');
  console.error('to nobody');
};
""",
        NOTHING,
        fails(ErrorCode.CRASHED),
        why="the channel is on descriptors of its own, and the worker is replaced",
        seen="with the channel left on descriptors 0 and 1",
    ),
    _output(
        "bytes-that-are-no-text",
        """
const attack = () => {
  process.stdout.write(Buffer.from([0xff, 0xfe, 0x00, 0xc3, 0x28, 0xed, 0xa0, 0x80, 0x0a]));
  console.log('\\ud800 \\u0000 \\u001b[2J');
};
""",
        scores(0.0, truncated=False),
        why="what is no UTF-8 is replaced",
        seen="with the log's bytes decoded strictly",
    ),
    _output(
        "console-of-ones-own",
        """
const attack = () => {
  console.log = () => { throw new Error('no'); };
  process.stdout.write = () => { throw new Error('no'); };
  globalThis.console = null;
};
const left = () => typeof console?.log !== 'function' || String(console.log).includes('no');
""",
        NOTHING,
        why="console and streams are made anew in every row's context",
        without=Guard.ROWS,
    ),
    _output(
        "inspected-objects-that-lie",
        """
const attack = () => {
  const custom = Symbol.for('nodejs.util.inspect.custom');
  console.log({ [custom]: () => { throw new Error('no'); } });
  console.log(new Proxy({}, { get() { throw new Error('no'); }, ownKeys() { throw new Error('no'); } }));
  console.log({ get x() { return this; }, toString: null, [Symbol.toPrimitive]: null });
};
""",
        NOTHING,
        fails(ErrorCode.USER_EXCEPTION),
        why="printing runs the row's own code, at the row's own cost",
        seen="never: it gains nothing",
    ),
)
