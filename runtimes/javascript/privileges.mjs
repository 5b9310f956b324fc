// @ts-check
/** Gives up root for good (`--drop-to UID:GID`), and throws if any right of root is left. */

const fs = process.getBuiltinModule('node:fs');

/**
 * @param {string} target `UID:GID`
 * @throws {Error} the user did not change, the process could become root again, or it still has a capability
 */
export function dropTo(target) {
  const match = /^(\d+):(\d+)$/.exec(target);
  if (!match) throw new Error(`--drop-to takes UID:GID, not ${target}`);
  const uid = Number(match[1]);
  const gid = Number(match[2]);
  if (uid === 0 || gid === 0) throw new Error('--drop-to refuses uid 0 and gid 0');
  const own = posix();
  own.setgroups([]);
  own.setgid(gid);
  own.setuid(uid);
  verify(uid, gid);
}

/** @returns {Required<Pick<NodeJS.Process, 'setgroups'|'setgid'|'setuid'|'getuid'|'getgid'|'geteuid'|'getegid'|'getgroups'>>} */
function posix() {
  return /** @type {any} */ (process);
}

/**
 * @param {number} uid
 * @param {number} gid
 */
function verify(uid, gid) {
  const own = posix();
  const groups = own.getgroups().filter((group) => group !== gid);
  if (own.getuid() !== uid || own.geteuid() !== uid || own.getgid() !== gid || own.getegid() !== gid || groups.length) {
    throw new Error('the user and group did not change');
  }
  for (const thread of fs.readdirSync('/proc/self/task')) {
    const status = fs.readFileSync(`/proc/self/task/${thread}/status`, 'utf8');
    if (/^Cap(Prm|Eff|Amb):\s*0*[1-9a-f]/m.test(status)) throw new Error('the runner still has a capability');
    if (!new RegExp(`^Uid:\\s+${uid}\\s+${uid}\\s+${uid}\\s+${uid}$`, 'm').test(status)) {
      throw new Error('a thread kept its user');
    }
  }
}
