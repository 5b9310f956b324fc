"""JavaScript attacks on the kernel: as far as Node reaches it, by its own calls, /proc, and what it can start."""
# ruff: noqa: E501 - programs, of which some are one line

from typing import Any, Final

from evaluator_host.selftest.attack import Attack, Group, Guard, javascript

_NOBODY: Final = "the guest is an unprivileged user without capabilities who can gain none"


def _kernel(name: str, program: str, **details: Any) -> Attack:
    told: dict[str, Any] = {"why": _NOBODY} | details
    return javascript(f"javascript-{name}", Group.KERNEL, "const fs = require('fs');\n" + program, **told)


ATTACKS: Final[tuple[Attack, ...]] = (
    _kernel(
        "become-somebody",
        """
const { spawnSync } = require('child_process');
const CODE = `const found = [];
for (const [name, ...args] of [['setuid', 0], ['setgid', 0], ['seteuid', 0], ['setgroups', [0]], ['initgroups', 'root', 0]]) {
  try { process[name](...args); found.push(name); } catch {}
}
console.log(found.join());`;
const attack = () => spawnSync(process.execPath, ['-e', CODE]).stdout.toString().trim();
""",
        without=Guard.CAPABILITIES,
    ),
    _kernel(
        "rights-of-the-process",
        """
const attack = () => {
  const fields = Object.fromEntries(fs.readFileSync('/proc/self/status', 'utf8').split('\\n').map((line) => line.split(':\\t')));
  return ['CapPrm', 'CapEff', 'CapAmb'].filter((name) => BigInt('0x' + fields[name]) !== 0n)
    .concat(fields.NoNewPrivs === '1' ? [] : ['NoNewPrivs'], fields.Uid.split('\\t')[0] === '0' ? ['uid 0'] : []).join();
};
""",
        without=Guard.CAPABILITIES,
    ),
    _kernel(
        "no-filter",
        "const attack = () => !/Seccomp:\\t2/.test(fs.readFileSync('/proc/self/status', 'utf8'));\n",
        why="the filter is in force for every process of the sandbox",
        without=Guard.SECCOMP,
    ),
    _kernel(
        "settings-of-the-kernel",
        """
const FILES = ['/proc/sys/kernel/hostname', '/proc/sys/kernel/core_pattern', '/proc/sys/vm/overcommit_memory', '/proc/sys/kernel/randomize_va_space',
  '/proc/sysrq-trigger', '/proc/self/uid_map', '/proc/self/gid_map', '/proc/self/setgroups', '/sys/kernel/profiling'];
const attack = () => FILES.filter((file) => {
  try { fs.writeFileSync(file, '1'); return fs.readFileSync(file, 'utf8') !== ''; } catch { return false; }
}).join();
""",
        seen="never on its own: besides a capability it takes the machine's own namespaces",
    ),
    _kernel(
        "out-of-memory-killer",
        """
const attack = () => {
  for (const wanted of [0, -1, -1000]) try { fs.writeFileSync('/proc/self/oom_score_adj', String(wanted)); } catch {}
  return Number(fs.readFileSync('/proc/self/oom_score_adj', 'utf8')) < 0 && 'the host dies before its guests';
};
""",
        seen="with CAP_SYS_RESOURCE of the machine",
    ),
    _kernel(
        "priority",
        """
const os = require('os');
const attack = () => { try { os.setPriority(0, -5); } catch {} return os.getPriority() < 0; };
""",
        seen="with CAP_SYS_NICE of the machine",
    ),
    _kernel(
        "devices",
        """
const PATHS = ['/dev/mem', '/dev/kmsg', '/dev/sda', '/dev/vda', '/dev/fuse', '/dev/kvm', '/dev/net/tun', '/dev/ptmx', '/dev/mqueue', '/dev/tty', '/proc/kcore', '/proc/kmsg'];
const attack = () => PATHS.filter((path) => {
  try { return fs.statSync(path).isCharacterDevice() && !['/dev/ptmx', '/dev/tty'].includes(path) && fs.closeSync(fs.openSync(path, 'r')) === undefined; } catch { return false; }
}).join();
""",
        why="/dev holds null, zero, full, random and urandom, and what a container engine puts there",
        seen="with the host's /dev bound into the sandbox",
    ),
    _kernel(
        "programs-that-lend-rights",
        """
const { join } = require('path');
function* files(folder) {
  let entries = [];
  try { entries = fs.readdirSync(folder, { withFileTypes: true }); } catch {}
  for (const entry of entries) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* files(path);
    else if (entry.isFile()) yield path;
  }
}
const { spawnSync } = require('child_process');
const attack = () => [...files('/usr/bin'), ...files('/usr/sbin'), ...files('/opt')].filter((path) => (fs.statSync(path).mode & 0o6000) !== 0)
  .filter(() => !/NoNewPrivs:\\t1/.test(fs.readFileSync('/proc/self/status', 'utf8'))).join();
""",
        why="no_new_privs makes such a bit mean nothing",
        seen="with no_new_privs off over an image that holds such programs",
    ),
    _kernel(
        "tools-of-an-administrator",
        """
const { spawnSync } = require('child_process');
const TOOLS = [['unshare', '-r', 'id'], ['mount', '-t', 'tmpfs', 'none', '/tmp'], ['nsenter', '-t', '1', '-a', 'id'], ['chroot', '/tmp', '/bin/true'],
  ['su', '-c', 'id'], ['sudo', '-n', 'id'], ['dmesg'], ['modprobe', 'loop'], ['ip', 'link', 'add', 'd0', 'type', 'dummy'], ['hostname', 'left'], ['date', '-s', '2020-01-01']];
const attack = () => TOOLS.filter(([tool, ...args]) => spawnSync(tool, args, { timeout: 3000 }).status === 0).map(([tool]) => tool).join();
""",
        why="none is inside bubblewrap, and in a container the filter refuses what they ask of the kernel",
        seen="with capabilities and without the filter in a container",
    ),
)
