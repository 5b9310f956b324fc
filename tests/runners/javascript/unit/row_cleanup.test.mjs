// @ts-check
import assert from 'node:assert/strict';
import { execSync, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { setTimeout as wait } from 'node:timers/promises';
import { test } from 'node:test';

const { killProcesses } = createRequire(import.meta.url)('../../../../runtimes/javascript/worker/row_cleanup.cjs');

/** A folder of a cgroup v1. SIGKILL does not end a process that is frozen in it, as may happen on a very busy machine. */
const FREEZER = `/sys/fs/cgroup/freezer/evaluator-host-test-${process.pid}`;

function makeFreezer() {
  try {
    mkdirSync(FREEZER);
    return true;
  } catch {
    return false; // the machine has no cgroup v1, or this user may not use it
  }
}

/** @param {number | undefined} pid @returns {string} `Z` if the process is dead, and this process has not waited for it yet */
const stateOf = (pid) => readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, '')[0];

test('all processes are dead when the cleanup returns', async () => {
  const children = Array.from({ length: 16 }, () => spawn('/bin/sh', ['-c', 'while :; do :; done'], { detached: true, stdio: 'ignore' }));
  await wait(200);
  killProcesses(false);
  assert.deepEqual(new Set(children.map(({ pid }) => stateOf(pid))), new Set(['Z']));
});

test('the cleanup waits for a process that cannot die yet', { skip: !makeFreezer() }, async (t) => {
  const child = spawn('/bin/sleep', ['600'], { detached: true, stdio: 'ignore' });
  writeFileSync(`${FREEZER}/cgroup.procs`, String(child.pid));
  writeFileSync(`${FREEZER}/freezer.state`, 'FROZEN');
  execSync(`(sleep 0.3; echo THAWED > ${FREEZER}/freezer.state) >/dev/null 2>&1 &`);
  t.after(() => new Promise((gone) => child.once('exit', gone)).then(() => rmdirSync(FREEZER)));
  killProcesses(false);
  assert.equal(stateOf(child.pid), 'Z');
});
