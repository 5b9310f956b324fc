/*
 * Implements structuredClone for one context: Node's own would return objects of another realm, for which `instanceof`
 * and equality of prototypes fail.
 */
(function (p, bridge, lazyDOMException) {
  'use strict';

  function structuredClone(value) {
    if (arguments.length === 0) throw new p.TypeError("The 'value' argument must be specified");
    return copy(value, new p.Map());
  }

  function copy(value, seen) {
    if (typeof value === 'function' || typeof value === 'symbol') refuse(p.String(value));
    if (typeof value !== 'object' || value === null) return value;
    if (hasSeen(seen, value)) return p.mapGet(seen, value);
    const brand = bridge.brandOf(value);
    if (p.isArray(value)) return fill(remember(seen, value, new p.Array(value.length)), value, seen);
    switch (brand) {
      case '': return fill(remember(seen, value, {}), value, seen);
      case 'Map': return copyMap(value, seen);
      case 'Set': return copySet(value, seen);
      case 'Date': return remember(seen, value, new p.Date(+value));
      case 'RegExp': return remember(seen, value, new p.RegExp(value.source, value.flags));
      case 'Error': return copyError(value, seen);
      case 'Number': case 'String': case 'Boolean': case 'BigInt': return remember(seen, value, p.Object(value.valueOf()));
      case 'view': case 'ArrayBuffer': case 'SharedArrayBuffer': return copyBinary(value, seen);
      default: return refuse('#<' + brand + '>');
    }
  }

  function hasSeen(seen, value) {
    return p.mapGet(seen, value) !== undefined;
  }

  function remember(seen, value, made) {
    p.mapSet(seen, value, made);
    return made;
  }

  function fill(made, value, seen) {
    const keys = p.keys(value);
    for (let i = 0; i < keys.length; i++) {
      p.defineProperty(made, keys[i], {
        __proto__: null, value: copy(value[keys[i]], seen), writable: true, enumerable: true, configurable: true,
      });
    }
    return made;
  }

  function copyMap(value, seen) {
    const made = remember(seen, value, new p.Map());
    p.mapForEach(value, (item, key) => p.mapSet(made, copy(key, seen), copy(item, seen)));
    return made;
  }

  function copySet(value, seen) {
    const made = remember(seen, value, new p.Set());
    p.setForEach(value, (item) => p.setAdd(made, copy(item, seen)));
    return made;
  }

  function copyError(value, seen) {
    const known = ['EvalError', 'RangeError', 'ReferenceError', 'SyntaxError', 'TypeError', 'URIError'];
    const name = known.includes(value.name) ? value.name : 'Error';
    const made = remember(seen, value, new globalThis[name](value.message));
    p.defineProperty(made, 'stack', { __proto__: null, value: value.stack, writable: true, configurable: true });
    if ('cause' in value) made.cause = copy(value.cause, seen);
    return made;
  }

  /** Clone binary data: a new buffer, and a view of the same kind on it. */
  function copyBinary(value, seen) {
    if (!ArrayBuffer.isView(value)) return remember(seen, value, value.slice(0));
    const Kind = globalThis[value[Symbol.toStringTag] ?? 'DataView'];
    const buffer = new Uint8Array(value.buffer, value.byteOffset, value.byteLength).slice().buffer;
    return remember(seen, value, new Kind(buffer));
  }

  function refuse(what) {
    const DOMException = lazyDOMException();
    throw new DOMException(what + ' could not be cloned.', 'DataCloneError');
  }

  return structuredClone;
})
