// @ts-check
'use strict';
/**
 * Detects changes that a row made to objects of the runner's realm (Buffer, URL, a Node module), so that the next row
 * does not see a patched `Buffer.prototype`. Changes are not undone; the worker is replaced.
 */

/**
 * @typedef {{get: () => any, value: any, inside: any[] | null}} Held the value that an accessor returns, and the values inside it
 * @typedef {{target: any, prototype: any, keys: PropertyKey[], descriptors: PropertyDescriptor[], extensible: boolean, held: Held[], size: number}} Snapshot
 */
const { isMap, isSet } = require('node:util').types;

const DEPTH = 3;
const SHARED = [
  Object.prototype, Function.prototype, Array.prototype, Promise.prototype, Error.prototype, String.prototype, Uint8Array.prototype,
  Object.getPrototypeOf(Uint8Array.prototype), Map.prototype, Object, Array, Promise, JSON, Reflect,
];

class Integrity {
  constructor() {
    /** @type {Map<any, Snapshot[]>} */
    this.known = new Map();
    /** @type {Set<any>} */
    this.handed = new Set();
  }

  /** Record the state of `root` when it is handed out. @param {any} root */
  hand(root) {
    if (this.handed.size === 0) this.#remember(SHARED, SHARED, 1);
    if ((typeof root !== 'object' && typeof root !== 'function') || root === null) return;
    if (!this.known.has(root)) this.#remember(root, [root], DEPTH);
    this.handed.add(SHARED);
    this.handed.add(root);
  }

  /** Return whether everything handed out since the last call is unchanged. */
  intact() {
    for (const root of this.handed) {
      for (const snapshot of this.known.get(root) ?? []) {
        if (!unchanged(snapshot)) return false;
      }
    }
    this.handed.clear();
    return true;
  }

  /** @param {any} key @param {any[]} roots @param {number} depth */
  #remember(key, roots, depth) {
    if (this.known.has(key)) return;
    /** @type {Snapshot[]} */
    const snapshots = [];
    const seen = new Set();
    for (const root of roots) touchLazyProperties(root);
    for (const root of roots) collect(root, depth, seen, snapshots);
    this.known.set(key, snapshots);
  }
}

/** Read accessors before the snapshot, because Node replaces some of them with their values on first use. */
function touchLazyProperties(/** @type {any} */ root) {
  if (typeof root !== 'object') return;
  for (const [key, descriptor] of Object.entries(Object.getOwnPropertyDescriptors(root))) {
    if (!descriptor.get || !descriptor.configurable) continue;
    try {
      void root[key];
    } catch {
      // this accessor works only on other objects, so it has no value here
    }
  }
}

/** @param {any} target @param {number} depth @param {Set<any>} seen @param {Snapshot[]} into */
function collect(target, depth, seen, into) {
  if (depth === 0 || seen.has(target)) return;
  seen.add(target);
  const keys = Reflect.ownKeys(target);
  const descriptors = keys.map((key) => /** @type {PropertyDescriptor} */ (Reflect.getOwnPropertyDescriptor(target, key)));
  const held = descriptors.flatMap((descriptor) => heldBehind(target, descriptor));
  into.push({ target, prototype: Reflect.getPrototypeOf(target), keys, descriptors, extensible: Reflect.isExtensible(target), held, size: sizeOf(target) });
  const prototype = Reflect.getPrototypeOf(target);
  if (prototype !== null && !SHARED.includes(prototype)) collect(prototype, depth, seen, into);
  descriptors.forEach((descriptor, index) => {
    const value = descriptor.value;
    const worthwhile = typeof value === 'function' ? hasMethods(value) : typeof value === 'object' && value !== null && !ArrayBuffer.isView(value);
    if (worthwhile) collect(value, keys[index] === 'prototype' ? depth : depth - 1, seen, into);
  });
}

/** Return the value of a property with a getter and a setter, such as `events.defaultMaxListeners`. @param {any} target @param {PropertyDescriptor}
 * descriptor @returns {Held[]} */
function heldBehind(target, { get, set }) {
  if (!get || !set) return [];
  try {
    const value = get.call(target);
    return [{ get: () => get.call(target), value, inside: insideOf(value) }];
  } catch {
    return []; // this accessor works only on other objects
  }
}

/** @param {any} value @returns {any[] | null} names and values of an object such as `util.inspect.defaultOptions` */
function insideOf(value) {
  return typeof value === 'object' && value !== null ? Object.entries(value).flat() : null;
}

const sizes = [Map, Set].map((kind) => /** @type {() => number} */ (Object.getOwnPropertyDescriptor(kind.prototype, 'size')?.get));

/** Return the number of entries of a map or set (such as the listeners of an EventTarget); 0 for anything else. @param {any} target */
function sizeOf(target) {
  return isMap(target) ? sizes[0].call(target) : isSet(target) ? sizes[1].call(target) : 0;
}

/** Return whether a function is a class or has functions as properties. @param {any} value */
function hasMethods(value) {
  return Reflect.ownKeys(value).length > 3 || Reflect.ownKeys(value.prototype ?? {}).length > 1;
}

/** @param {Snapshot} snapshot */
function unchanged({ target, prototype, keys, descriptors, extensible, held, size }) {
  if (sizeOf(target) !== size || !held.every(holds)) return false;
  if (Reflect.getPrototypeOf(target) !== prototype || Reflect.isExtensible(target) !== extensible) return false;
  if (Reflect.ownKeys(target).length !== keys.length) return false;
  for (let i = 0; i < keys.length; i++) {
    const now = Reflect.getOwnPropertyDescriptor(target, keys[i]);
    const was = descriptors[i];
    if (now === undefined || !Object.is(now.value, was.value) || now.get !== was.get || now.set !== was.set) return false;
    if (now.writable !== was.writable || now.enumerable !== was.enumerable || now.configurable !== was.configurable) return false;
  }
  return true;
}

/** @param {Held} held */
function holds({ get, value, inside }) {
  const now = get();
  if (!Object.is(now, value)) return false;
  const entries = insideOf(now);
  return inside === null || (entries !== null && entries.length === inside.length && entries.every((entry, index) => Object.is(entry, inside[index])));
}

module.exports = { Integrity };
