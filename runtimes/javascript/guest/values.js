/*
 * Writes a returned value as JSON, inside the context that made it and with saved built-ins only. So patched prototypes,
 * getters, proxies and toJSON can change only their own value.
 *
 * The code never appends to an array and never reads a missing property of its own objects, because the user's
 * prototypes could intercept that, for example by an inherited setter for "0".
 */
(function (p, bridge) {
  'use strict';
  const DEPTH = 64;
  const NOTES = 15; // maximum number of notes; one more note counts the rest
  const MOST_SAFE = 2 ** 53 - 1;
  const MOST_DIGITS = 1e21; // the smallest number that JavaScript writes with an exponent
  const PATHS = 8;
  const BIGINT_DIGITS = 4000; // maximum number of digits in an integer that the host reads
  const STOP = { __proto__: null };

  /** Return the body of a `result` frame, or null when it would exceed `limit` bytes. `told`: a warning to begin with, as JSON, or ''. */
  function encodeResult(value, limit, told = '') {
    const state = {
      __proto__: null, limit, size: 0, unsupported: null, notes: told, noteCount: told === '' ? 0 : 1, paths: '', pathCount: 0, topNumber: false,
    };
    let text;
    try {
      text = write(state, value, { __proto__: null, up: null, key: '$', holder: undefined }, 1, true);
    } catch (thrown) {
      if (thrown !== STOP) throw thrown;
      if (state.unsupported === null) return null;
      return tail(state, '{"kind":"unsupported"');
    }
    if (text === undefined) return tail(state, '{"kind":"missing"');
    return tail(state, '{"kind":"' + kindOfText(state, text) + '","value":' + text);
  }

  function tail(state, head) {
    if (state.noteCount > NOTES) {
      state.notes += ',{"code":"coerced","message":' + p.quote(state.noteCount - NOTES + ' more values were read as another type, or replaced') + '}';
    }
    return head + ',"nonfinite":[' + state.paths + '],"unsupported":' + (state.unsupported ?? 'null') +
      ',"notes":[' + state.notes + ']}';
  }

  function kindOfText(state, text) {
    switch (text[0]) {
      case '{': return 'object';
      case '[': return 'array';
      case '"': return 'string';
      case 't': case 'f': return 'bool';
      case 'n': return state.topNumber ? 'number' : 'null';
      default: return 'number';
    }
  }

  function write(state, value, at, depth, mayConvert) {
    switch (typeof value) {
      case 'string': return writeString(state, value, at);
      case 'number': return writeNumber(state, value, at);
      case 'bigint': return writeBigint(state, value, at);
      case 'boolean': return grow(state, value ? 'true' : 'false');
      case 'undefined': return undefined;
      case 'object': return value === null ? grow(state, 'null') : writeObject(state, value, at, depth, mayConvert);
      default: return refuse(state, at, typeof value);
    }
  }

  function grow(state, text) {
    state.size += text.length;
    if (state.size > state.limit) throw STOP;
    return text;
  }

  function refuse(state, at, type) {
    state.unsupported = '{"path":' + p.quote(pathOf(at)) + ',"type":' + p.quote(p.slice(type, 0, 200)) + '}';
    throw STOP;
  }

  function note(state, code, message) {
    if (state.noteCount++ >= NOTES) return;
    state.notes += (state.noteCount > 1 ? ',' : '') + '{"code":"' + code + '","message":' + p.quote(message) + '}';
  }

  function pathOf(at) {
    let path = '';
    for (let step = at; step !== null; step = step.up) {
      path = (step.up === null ? '$' : typeof step.key === 'number' ? '[' + step.key + ']' : keyPath(step.key)) + path;
      if (path.length > 500) return '$…' + p.slice(path, path.length - 500);
    }
    return path;
  }

  /** Describe a value by its type and position, for messages: "the returned BigInt", "BigInt at $.score". */
  function placed(name, at) {
    return at.up === null ? 'the returned ' + name : name + ' at ' + pathOf(at);
  }

  function keyPath(key) {
    for (let i = 0; i < key.length; i++) {
      const c = p.charCodeAt(key, i);
      const plain = c === 95 || c === 36 || c > 127 || (c >= 97 && c <= 122) || (c >= 65 && c <= 90) || (i > 0 && c >= 48 && c <= 57);
      if (!plain) return '[' + p.quote(p.slice(key, 0, 100)) + ']';
    }
    return key === '' ? '[""]' : '.' + p.slice(key, 0, 100);
  }

  function writeString(state, value, at) {
    if (value.length > state.limit) throw STOP;
    if (p.isWellFormed(value)) return grow(state, p.quote(value));
    note(state, 'coerced', 'half of a surrogate pair at ' + pathOf(at) + ' was replaced');
    return grow(state, p.quote(p.toWellFormed(value)));
  }

  function writeNumber(state, value, at) {
    if (!p.isFinite(value)) return writeNonfinite(state, at);
    if (value === 0) return grow(state, 1 / value < 0 ? '-0.0' : '0');
    const size = value < 0 ? -value : value;
    // write all digits, because the shortest form would be another integer
    return grow(state, '' + (size > MOST_SAFE && size < MOST_DIGITS ? p.BigInt(value) : value));
  }

  function writeNonfinite(state, at) {
    if (state.pathCount < PATHS) state.paths += (state.pathCount++ ? ',' : '') + p.quote(pathOf(at));
    if (at.up === null) state.topNumber = true;
    return grow(state, 'null');
  }

  function writeBigint(state, value, at) {
    const digits = '' + value;
    note(state, 'coerced', placed('BigInt', at) + ' was taken as a number');
    return digits.length > BIGINT_DIGITS ? writeNonfinite(state, at) : grow(state, digits);
  }

  function writeObject(state, value, at, depth, mayConvert) {
    if (depth > DEPTH) refuse(state, at, 'value deeper than 64 levels');
    for (let step = at; step !== null; step = step.up) {
      if (step.holder === value) refuse(state, at, 'cyclic value');
    }
    const array = p.isArray(value);
    const prototype = p.getPrototypeOf(value);
    const plain = array || prototype === p.objectPrototype || prototype === null;
    const brand = plain ? '' : bridge.brandOf(value);
    if (brand === 'view') refuse(state, at, nameOf(value));
    if (mayConvert) {
      const toJSON = value.toJSON;
      if (typeof toJSON === 'function') return convert(state, value, toJSON, at, depth);
    }
    at.holder = value;
    if (array) return writeArray(state, value, at, depth);
    if (plain) return writeEntries(state, value, at, depth);
    return writeSpecial(state, value, brand, at, depth);
  }

  function convert(state, value, toJSON, at, depth) {
    const converted = p.apply(toJSON, value, [typeof at.key === 'number' ? '' + at.key : at.up === null ? '' : at.key]);
    note(state, 'coerced', placed(nameOf(value), at) + ' was taken as what its toJSON() returns');
    return write(state, converted, at, depth, false);
  }

  function writeSpecial(state, value, brand, at, depth) {
    switch (brand) {
      case '':
        note(state, 'coerced', placed('instance of ' + nameOf(value), at) + ' was taken as an object of its fields');
        return writeEntries(state, value, at, depth);
      case 'Map': return writeMap(state, value, at, depth);
      case 'Number': return writeNumber(state, p.numberValue(value), at);
      case 'String': return writeString(state, p.stringValue(value), at);
      case 'Boolean': return grow(state, p.booleanValue(value) ? 'true' : 'false');
      case 'BigInt': return writeBigint(state, p.bigintValue(value), at);
      case 'Error': if (at.up !== null) return writeError(state, value, at);
      // an error that is the whole result is refused like any other object
      default: return refuse(state, at, brand);
    }
  }

  function writeError(state, value, at) {
    const message = value.message;
    note(state, 'coerced', placed(nameOf(value), at) + ' was taken as text');
    return writeString(state, nameOf(value) + (typeof message === 'string' && message !== '' ? ': ' + message : ''), at);
  }

  function writeArray(state, value, at, depth) {
    let text = '[';
    const length = value.length;
    for (let i = 0; i < length; i++) {
      const item = write(state, value[i], { __proto__: null, up: at, key: i, holder: undefined }, depth + 1, true);
      text += grow(state, i ? ',' : '') + (item === undefined ? grow(state, 'null') : item);
    }
    return text + grow(state, ']');
  }

  function writeEntries(state, value, at, depth) {
    let text = '{';
    const keys = p.keys(value);
    for (let i = 0; i < keys.length; i++) text += writeEntry(state, keys[i], value[keys[i]], at, depth, text === '{');
    return text + grow(state, '}');
  }

  function writeEntry(state, key, value, at, depth, first) {
    let item = write(state, value, { __proto__: null, up: at, key, holder: undefined }, depth + 1, true);
    if (item === undefined && key === 'score' && at.up === null) item = grow(state, 'null'); // written as null, like None in Python
    if (item === undefined) return '';
    return grow(state, (first ? '' : ',') + p.quote(nameIn(state, key, at)) + ':') + item;
  }

  function nameIn(state, key, at) {
    if (p.isWellFormed(key)) return key;
    note(state, 'coerced', 'half of a surrogate pair in a key at ' + pathOf(at) + ' was replaced');
    return p.toWellFormed(key);
  }

  function writeMap(state, value, at, depth) {
    let text = '{';
    p.mapForEach(value, (item, key) => {
      if (typeof key !== 'string') refuse(state, at, 'Map with keys that are not strings');
      text += writeEntry(state, key, item, at, depth, text === '{');
    });
    note(state, 'coerced', placed('Map', at) + ' was taken as an object');
    return text + grow(state, '}');
  }

  /** Return the name of a value's class; always a string, whatever its getters do. */
  function nameOf(value) {
    try {
      const name = value.constructor.name;
      if (typeof name === 'string' && name !== '') return p.slice(name, 0, 100);
    } catch {
      // the constructor is missing, or its getter throws
    }
    return 'Object';
  }

  return { __proto__: null, encodeResult, nameOf };
})
