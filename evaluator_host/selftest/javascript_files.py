"""JavaScript attacks on files: of the host, of the runner, of the next row."""
# ruff: noqa: E501 - programs, of which some are one line

from typing import Final

from evaluator_host.model.outcome import ErrorCode
from evaluator_host.selftest.attack import SMALL, Attack, Expected, Group, Guard, fails, javascript

_FS: Final = """
const fs = require('fs');
const tried = (action) => { try { return action(); } catch { return null; } };
"""
_ABSENT: Final = "the sandbox's root holds the runtime and nothing of the host's"
_CLEANED: Final = "the runner empties /tmp and /dev/shm after a row, and replaces a worker that left something open"


def _files(name: str, program: str, *expected: Expected, why: str = _ABSENT, **details: object) -> Attack:
    return javascript(f"javascript-{name}", Group.FILES, _FS + program, *expected, why=why, **details)


ATTACKS: Final[tuple[Attack, ...]] = (
    _files(
        "host-users",
        """
const { createHash } = require('crypto');
const attack = (inputs) => tried(() => createHash('sha256').update(fs.readFileSync('/etc/passwd')).digest('hex')) === inputs.passwd;
""",
        without=Guard.ROOT,
    ),
    _files(
        "host-secret",
        "const attack = (inputs) => tried(() => fs.readFileSync(inputs.file, 'utf8'));\n",
        without=Guard.ROOT,
    ),
    _files(
        "symbolic-link-out",
        """
const attack = (inputs) => {
  fs.symlinkSync(inputs.file, '/tmp/link');
  fs.symlinkSync(`/proc/self/root/../../..${inputs.file}`, '/tmp/longer');
  return ['/tmp/link', '/tmp/longer'].map((path) => tried(() => fs.readFileSync(path, 'utf8'))).join('');
};
""",
        without=Guard.ROOT,
    ),
    _files(
        "hosts-process",
        """
const { createHash } = require('crypto');
const attack = (inputs) => [`/proc/${inputs.pid}`, `/opt/proc/${inputs.pid}`]
  .map((path) => tried(() => createHash('sha256').update(fs.readFileSync(`${path}/cmdline`)).digest('hex'))).includes(inputs.command);
""",
        why="the sandbox has a process namespace and a /proc of its own",
        without=Guard.PROC,
    ),
    _files(
        "environment-of-every-process",
        """
const KNOWN = /^(PATH|HOME|TMPDIR|USER|HOSTNAME|LANG|(OMP|OPENBLAS|MKL|NUMEXPR|BLIS)_NUM_THREADS|LD_LIBRARY_PATH|PWD|PYTHON.*|NODE_.*)=/;
const attack = () => fs.readdirSync('/proc').filter((name) => /^\\d+$/.test(name))
  .flatMap((pid) => (tried(() => fs.readFileSync(`/proc/${pid}/environ`, 'utf8')) ?? '').split('\\0'))
  .concat(Object.entries(process.env).map(([name, value]) => `${name}=${value}`))
  .filter((pair) => pair !== '' && !KNOWN.test(pair)).join();
""",
        why="a sandbox starts with an environment that is written down in full",
        without=Guard.ENVIRONMENT,
    ),
    _files(
        "writes-to-the-runner-and-the-root",
        """
const PLACES = ['/', '/opt', '/opt/runner', '/opt/runner/javascript', '/opt/runner/worker', '/opt/node/bin', '/opt/esbuild', '/opt/packages',
  '/opt/packages/node_modules', '/usr', '/usr/lib', '/etc', '/dev', '/opt/open', '/var/tmp', '/run', '/node_modules', '/proc/self'];
const attack = () => PLACES.filter((folder) => tried(() => {
  fs.writeFileSync(`${folder}/left`, 'x');
  fs.unlinkSync(`${folder}/left`);
  return true;
})).join();
""",
        why="the root is read-only, and so is all in it",
        without=Guard.READ_ONLY,
    ),
    _files(
        "runner-rewritten",
        """
const attack = () => ['/opt/runner', '/opt/runner/javascript'].flatMap((folder) => (tried(() => fs.readdirSync(folder)) ?? [])
  .map((name) => `${folder}/${name}`)).filter((file) => tried(() => {
    fs.closeSync(fs.openSync(file, 'r+'));
    return true;
  }) || tried(() => {
    fs.chmodSync(file, 0o777);
    return true;
  }) || tried(() => {
    fs.renameSync(file, `${file}.old`);
    return true;
  })).join();
""",
        why="the runner's files are mounted read-only and belong to somebody else",
        seen="over a copy of the runner that is bound writable and belongs to the guest",
    ),
    _files(
        "hard-link-to-the-runner",
        """
const attack = () => ['/opt/runner/runner.mjs', '/opt/runner/javascript/runner.mjs', '/etc/passwd', process.execPath]
  .filter((file) => tried(() => {
    fs.linkSync(file, '/tmp/link');
    fs.appendFileSync('/tmp/link', 'x');
    return true;
  })).join();
""",
        why="scratch space is a file system of its own, on which no other's file can be linked",
        seen="with /tmp on the file system of a writable runner",
    ),
    _files(
        "file-for-the-next-row",
        """
const PLACES = ['/tmp', '/dev/shm'];
const attack = (inputs) => {
  for (const folder of PLACES) {
    fs.mkdirSync(`${folder}/closed/deeper`, { recursive: true });
    fs.writeFileSync(`${folder}/${inputs.mark}`, 'x');
    fs.writeFileSync(`${folder}/closed/deeper/x`, 'x');
    fs.chmodSync(`${folder}/closed/deeper`, 0);
    fs.chmodSync(`${folder}/closed`, 0);
  }
};
const left = () => PLACES.flatMap((folder) => fs.readdirSync(folder)).filter((name) => !name.startsWith('.output')).join();
""",
        why=_CLEANED,
        without=Guard.CLEANING,
    ),
    _files(
        "descriptor-for-the-next-row",
        """
const open = () => fs.readdirSync('/proc/self/fd').map((fd) => tried(() => fs.readlinkSync(`/proc/self/fd/${fd}`)) ?? '');
const attack = () => {
  fs.openSync('/tmp/kept', 'w');
  fs.unlinkSync('/tmp/kept');
};
const left = () => open().filter((path) => path.startsWith('/tmp/kept')).join();
""",
        why=_CLEANED,
        seen="with `probeDescriptor` of the worker always the same",
    ),
    _files(
        "working-folder-and-mask-for-the-next-row",
        """
const attack = () => { tried(() => process.chdir('/dev/shm')); tried(() => process.umask(0)); };
const left = () => process.cwd() !== '/tmp' || require('fs').realpathSync('.') !== '/tmp';
""",
        why="process.chdir is not offered to a row",
        seen="with the worker's own process handed to the row",
    ),
    _files(
        "full-disk",
        "const attack = () => { for (;;) fs.appendFileSync('/tmp/big', Buffer.alloc(1 << 20, 1)); };\n",
        fails(ErrorCode.DISK_LIMIT),
        why="scratch space is a file system of `disk_mb`",
        without=Guard.DISK,
    ),
    _files(
        "sparse-file",
        """
const attack = () => tried(() => {
  fs.writeFileSync('/tmp/sparse', 'x');
  fs.truncateSync('/tmp/sparse', 2 ** 40);
  const found = fs.statSync('/tmp/sparse');
  return found.blocks * 512 > 2 ** 30;
});
""",
        why="what is not written takes no space, and what is is counted",
        limits=SMALL,
        seen="never; it must not be taken for a full disk either",
    ),
)
