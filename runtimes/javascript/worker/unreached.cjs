// @ts-check
'use strict';
/** Records the hosts that code cannot reach, so that the result can name them. It forgets hosts that answer later. */
const channels = require('node:diagnostics_channel');
const { errorMonitor } = require('node:events');

const MOST = 5;
const NAME_CHARS = 200;
const IN_VAIN = /^(?:connect|getaddrinfo|query)/; // system calls that fail when a host cannot be reached

/** @type {Set<string>} hosts that could not be reached since the last `take` */
const hosts = new Set();
let watching = false;

/** From now on, record the connections of this thread that fail. */
function watch() {
  if (watching) return;
  watching = true;
  channels.subscribe('net.client.socket', (/** @type {any} */ { socket }) => {
    socket.once(errorMonitor, note);
    socket.once('connect', () => hosts.delete(`${socket.remoteAddress}:${socket.remotePort}`));
  });
}

/** @param {any} error */
function note(error) {
  const one = error?.errors?.[0] ?? error; // an AggregateError has an error for each address of the host
  if (!IN_VAIN.test(one?.syscall ?? '')) return;
  const host = one.hostname ?? (one.port && `${one.address}:${one.port}`);
  if (host && hosts.size < MOST) hosts.add(String(host).slice(0, NAME_CHARS));
}

/** Return the hosts that code could not reach, and forget them. */
function take() {
  const found = [...hosts];
  hosts.clear();
  return found;
}

module.exports = { watch, take };
