// @ts-check
'use strict';
/** Removes what a row left outside its context: its processes, and files in the sandbox's own temporary folders. */
const fs = require('node:fs');

const GONE_MS = 2000; // time after which processes that still run are left alone
const PAUSE = new Int32Array(new SharedArrayBuffer(4));

/**
 * Kill every descendant of this process. In its own sandbox, also kill every other process, because a detached
 * process becomes a child of process 1. Return when they are gone, since a killed process ends only after its memory is
 * freed.
 *
 * @param {boolean} ownSandbox
 */
function killProcesses(ownSandbox) {
  const end = performance.now() + GONE_MS;
  for (let found = others(ownSandbox); found.length > 0 && performance.now() < end; found = others(ownSandbox)) {
    for (const pid of found) kill(pid);
    Atomics.wait(PAUSE, 0, 0, 1);
  }
}

/** @param {boolean} ownSandbox */
function others(ownSandbox) {
  return ownSandbox ? strangers() : descendants();
}

/** Return all descendants of this process, because a thread may be waiting for the end of any process that has inherited its child's pipes. @returns
 * {number[]} */
function descendants() {
  const found = /** @type {number[]} */ ([]);
  for (let pending = ['self'], next = pending.pop(); next !== undefined; next = pending.pop()) {
    for (const thread of list(`/proc/${next}/task`)) {
      const children = read(`/proc/${next}/task/${thread}/children`).split(' ').filter(Boolean);
      pending.push(...children);
      found.push(...children.map(Number));
    }
  }
  return found.filter((pid) => !'ZX'.includes(stateOf(pid)));
}

/** Return all processes except this one and its ancestors. @returns {number[]} */
function strangers() {
  const family = new Set([1]);
  for (let pid = process.pid; pid > 1 && !family.has(pid); pid = parentOf(pid)) family.add(pid);
  return list('/proc').filter((name) => /^\d+$/.test(name)).map(Number).filter((pid) => !family.has(pid) && !'ZX'.includes(stateOf(pid)));
}

/** Return the fields of /proc/PID/stat after the name, which may itself contain spaces and parentheses. @param {number} pid */
function stat(pid) {
  return read(`/proc/${pid}/stat`).replace(/^.*\) /s, '').split(' ');
}

/** @param {number} pid */
function stateOf(pid) {
  return stat(pid)[0] || 'X';
}

/** @param {number} pid */
function parentOf(pid) {
  return Number(stat(pid)[1]) || 0;
}

/** Empty the folders that belong to the sandbox. @param {string[]} folders */
function emptyFolders(folders) {
  for (const folder of folders) {
    for (const name of list(folder)) {
      try {
        fs.rmSync(`${folder}/${name}`, { recursive: true, force: true, maxRetries: 2 });
      } catch {
        openUp(`${folder}/${name}`); // a folder at any depth may lack permissions
        remove(`${folder}/${name}`);
      }
    }
  }
}

/** Write files into a folder, and overwrite those that rows have changed or replaced. @param {string} folder @param {Record<string, string>} files
 * contents of the files, by path */
function writeFiles(folder, files) {
  for (const [path, text] of Object.entries(files)) {
    const inner = path.lastIndexOf('/');
    if (inner > 0) fs.mkdirSync(`${folder}/${path.slice(0, inner)}`, { recursive: true });
    fs.writeFileSync(`${folder}/${path}`, text);
  }
}

/**
 * Make links in a folder to everything in another folder, and restore links that rows have replaced. A whole subfolder
 * gets one link, unless the first folder has a subfolder with that name.
 *
 * @param {string} folder @param {string} source
 */
function linkFiles(folder, source) {
  for (const name of fs.readdirSync(source)) {
    const [path, target] = [`${folder}/${name}`, `${source}/${name}`];
    const found = fs.lstatSync(path, { throwIfNoEntry: false });
    if (found?.isDirectory() && fs.statSync(target).isDirectory()) {
      linkFiles(path, target);
    } else if (!found?.isSymbolicLink() || fs.readlinkSync(path) !== target) {
      remove(path);
      fs.symlinkSync(target, path);
    }
  }
}

/** Restore the permission to list and empty a folder and all folders below; links are not followed. @param {string} top */
function openUp(top) {
  const pending = [top];
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    try {
      if (!fs.lstatSync(path).isDirectory()) continue;
      fs.chmodSync(path, 0o700);
    } catch {
      continue;
    }
    for (const name of list(path)) pending.push(`${path}/${name}`);
  }
}

/** @param {string} path */
function remove(path) {
  try {
    fs.rmSync(path, { recursive: true, force: true, maxRetries: 2 });
  } catch {
    // the entry cannot be removed from inside the sandbox, so another row may find it
  }
}

/** @param {number} pid */
function kill(pid) {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // the process is already gone
  }
}

/** @param {string} path */
function list(path) {
  try {
    return fs.readdirSync(path);
  } catch {
    return [];
  }
}

/** @param {string} path */
function read(path) {
  try {
    return fs.readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

module.exports = { killProcesses, emptyFolders, linkFiles, writeFiles };
