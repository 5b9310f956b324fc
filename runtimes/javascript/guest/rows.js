/*
 * Runs the user's module and its entry inside one context, and returns results as strings. User code can reach only
 * `__evaluator_host_entries__` and `__evaluator_host_list__` of this file: the accessor at the end of a module reports
 * its names through the first, and code that gives a platform a list of evaluators reports the list through the second.
 */
(function (p, bridge, values, errors, globals) {
  'use strict';
  const { setPrototypeOf } = Object;
  const state = { __proto__: null, declared: undefined, module: undefined, lists: setPrototypeOf([], null), listed: undefined };
  const NEAR = 50;
  const NOTES = 10; // maximum number of evaluators in a file that add a warning about a row
  const MOST_SAFE = 2 ** 53 - 1;

  function install() {
    const module = { exports: {}, id: '.', filename: '/evaluator.js', loaded: false, children: [], paths: [], require: (id) => globalThis.require(id) };
    const names = globals.install(module);
    state.module = module;
    if (names.includes('module')) hide('module', module);
    if (names.includes('exports')) hide('exports', module.exports);
    if (names.includes('__filename')) hide('__filename', module.filename);
    if (names.includes('__dirname')) hide('__dirname', '/');
    hide('__evaluator_host_entries__', (declared) => { state.declared = declared; });
    hide('__evaluator_host_list__', (list) => { state.lists[state.lists.length] = list; });
  }

  function hide(name, value) {
    p.defineProperty(globalThis, name, { __proto__: null, value, writable: true, enumerable: false, configurable: true });
  }

  /** Run the module, then `next`; this is asynchronous if the module awaits at the top level. */
  function start(moduleFunction, next, done) {
    let pending;
    try {
      pending = p.apply(moduleFunction, state.module.exports, []);
    } catch (thrown) {
      return done('load_error', errors.describe(thrown));
    }
    state.module.loaded = true;
    if (pending === undefined) return next();
    bridge.wait(true);
    return startLater(pending, next, done);
  }

  async function startLater(pending, next, done) {
    try {
      await pending;
    } catch (thrown) {
      done('load_error', errors.describe(thrown));
      return;
    }
    bridge.wait(false);
    next();
  }

  /** Find the evaluator's function: `selector` names an export, a declared name, or a method of one. */
  function pick(selector) {
    let holder;
    let found;
    if (selector.where === 'declared') found = state.declared?.[selector.name];
    else if (selector.where === 'listed') found = listed()[selector.name];
    else if (selector.where === 'module') found = state.module.exports;
    else [holder, found] = [state.module.exports, state.module.exports[selector.name]];
    if (selector.method === undefined) return [holder, found];
    return [found, found[selector.method]];
  }

  /** Return the members of the lists that the code gave to its platform; nothing if one of them cannot be read. */
  function listed() {
    if (state.listed !== undefined) return state.listed;
    state.listed = bareList();
    const members = bareList();
    try {
      for (let i = 0; i < state.lists.length; i++) {
        const list = typeof state.lists[i] === 'function' ? p.apply(state.lists[i], undefined, []) : state.lists[i];
        if (!p.isArray(list)) return state.listed;
        for (let j = 0; j < list.length && members.length < NEAR; j++) members[members.length] = list[j];
      }
    } catch {
      return state.listed;
    }
    return state.listed = members;
  }

  /**
   * Throw an error if the row lacks a property that an evaluator needs. With `mayLack`, the row may lack properties that the code tests; if it does,
   * return a warning as JSON, else ''. Messages call the evaluator `who`.
   */
  function lacking(selector, row, { mayLack, who = 'the evaluator' }) {
    if (otherArgs(selector, row) !== null) return '';
    let names = '';
    for (let i = 0; i < selector.needs.length; i++) {
      const name = selector.needs[i];
      if (name in row) continue;
      if (!mayLack || selector.tested === undefined || !has(selector.tested, name)) throw new p.TypeError(who + ' needs ' + name + ', which the row does not have: add it, or give it a default');
      names += (names === '' ? '' : ', ') + name;
    }
    if (names === '') return '';
    return '{"code":"missing_column","message":' + p.quote('the row does not have ' + names + ', which the code tests, so the code goes on without it') + '}';
  }

  /**
   * Return a warning as JSON if the code compares a value that the row lacks; else ''. An output may lack a property:
   * then the comparison fails, as it should. There is no warning if the row has another value that the code compares
   * with the other side, or if the code can decide by something else.
   */
  function lackingCompared(pairs, args) {
    for (let i = 0; i < pairs.length; i++) {
      const { sides, others, isOptional } = pairs[i];
      const one = sides[0];
      const other = sides[1];
      const both = lacks(one, args, false) && lacks(other, args, false);
      const at = lacks(one, args, one.mayLack) ? 0 : 1;
      if (!both && (!lacks(sides[at], args, sides[at].mayLack) || isOptional || hasOne(others[1 - at], args))) continue;
      const told = both ? 'has neither, so that undefined is equal to undefined' : 'does not have ' + sides[at].text + ', which is undefined';
      return '{"code":"missing_column","message":' + p.quote('the code compares ' + one.text + ' with ' + other.text + ', but the row ' + told) + '}';
    }
    return '';
  }

  function hasOne(parts, args) {
    for (let i = 0; i < parts.length; i++) if (!lacks(parts[i], args, false)) return true;
    return false;
  }

  /** Return whether an argument lacks a part. With `mayLack`, an object may lack properties, but a text or a number counts as lacking them. */
  function lacks({ at, keys }, args, mayLack) {
    let value = args[at];
    for (let i = 0; i < keys.length; i++) {
      if (value === undefined || value === null) return i > 0 && !mayLack;
      const own = typeof value === 'object' ? p.getOwnPropertyDescriptor(value, keys[i]) : undefined;
      if (own === undefined) return !(keys[i] in p.Object(value)) && !(mayLack && typeof value === 'object');
      value = own.value;
    }
    return false;
  }

  /** Return how messages name the evaluator's function. */
  function named({ where, name, method }) {
    if (typeof name !== 'string' || name === 'default' || where === 'module') return 'the evaluator';
    return method === undefined ? name : name + '.' + method;
  }

  /** Return whether a list contains a value, without calling the methods of lists, which user code may have changed. */
  function has(list, value) {
    return placeOf(list, value) >= 0;
  }

  /** Add the row's output under this name, too. A row that has only variables (and no trace) keeps its own property with this name. */
  function nameOutput(name, row) {
    const isOnlyVariables = !('inputs' in row && 'trace' in row);
    if (!(isOnlyVariables && name in row) && 'output' in row) row[name] = row.output;
  }

  /** Return the arguments of an evaluator that gets properties of a row by their names. */
  function byName({ names }, row) {
    const args = [];
    for (let i = 0; i < names.length; i++) args[i] = row[names[i]];
    return args;
  }

  /** Return the arguments of an evaluator that gets something else from this row than the properties that it names: the row, a column that is the evaluator's row, or inputs, outputs and trace. Else return null. */
  function otherArgs(selector, row) {
    if (takesRow(selector, row)) return [row];
    if (takesColumn(selector, row)) return [row[selector.inside]];
    return takesPlaces(selector, row) ? [row.inputs, row.outputs, row.trace] : null;
  }

  /** Return whether the only argument of an evaluator is the row: the row has no property with the argument's name, but has all that the evaluator reads from it. */
  function takesRow({ names, reads }, row) {
    return names !== undefined && !(names[0] in row) && hasReads(reads, row);
  }

  /** Return whether a column is the evaluator's row. A row that has a trace has all its inputs under `input` and `inputs`, which are not columns. */
  function takesColumn({ inside, reads }, row) {
    if (inside === undefined || !isPlain(row[inside])) return false;
    const all = row[inside === 'input' ? 'inputs' : 'input'];
    return (!('trace' in row) || (isPlain(all) && inside in all)) && hasReads(reads, row[inside]);
  }

  /** Return whether an evaluator gets inputs, outputs and trace because the row lacks a column that it names. */
  function takesPlaces({ names, output, placed }, row) {
    if (placed !== true || !('trace' in row) || !isPlain(row.inputs)) return false;
    for (let i = 0; i < names.length; i++) if (names[i] !== output && !(names[i] in row.inputs)) return true;
    return false;
  }

  function hasReads(reads, holder) {
    if (reads === undefined || reads.length === 0) return false;
    for (let i = 0; i < reads.length; i++) if (!(reads[i] in holder)) return false;
    return true;
  }

  function isPlain(value) {
    return typeof value === 'object' && value !== null;
  }

  /** Return an object that records missing keys when they are read: JavaScript looks them up in the prototype, which is a proxy. */
  function watched(params) {
    const absent = (key) => typeof key === 'string' && !(key in p.objectPrototype) && key !== 'then' && key !== 'toJSON';
    const asked = new Proxy({}, {
      __proto__: null,
      get(target, key) {
        if (absent(key)) bridge.lacksParam(key);
        return target[key];
      },
      has(target, key) {
        if (absent(key)) bridge.lacksParam(key);
        return key in target;
      },
    });
    return setPrototypeOf(params, asked);
  }

  /** Return a value of a row. An integer that no number can hold exactly becomes a BigInt. */
  function exactly(_key, value, context) {
    if (typeof value !== 'number' || (value <= MOST_SAFE && value >= -MOST_SAFE)) return value;
    const { source } = context;
    for (let i = 0; i < source.length; i++) {
      const c = p.charCodeAt(source, i);
      if (c !== 45 && (c < 48 || c > 57)) return value;
    }
    return p.BigInt(source);
  }

  /** Replace the aliases of a value's keys with the real names; aliases have no escapes, which `JSON.parse` could misread. */
  function renamed(value, names) {
    if (typeof value !== 'object' || value === null) return value;
    const keys = p.keys(value);
    const made = p.isArray(value) ? [] : {};
    for (let i = 0; i < keys.length; i++) {
      const own = { __proto__: null, value: renamed(value[keys[i]], names), writable: true, enumerable: true, configurable: true };
      p.defineProperty(made, names[keys[i]] ?? keys[i], own);
    }
    return made;
  }

  /**
   * Call an entry with a row. A warning about the row goes into `told.notes`; `told.mayLack` says whether the row may lack properties that the code tests. Messages
   * call the entry `told.who`.
   */
  function applied(selector, argsText, told) {
    const [holder, entry] = pick(selector);
    let body = p.startsWith(argsText, '{"integers"') ? p.parse(argsText, exactly) : p.parse(argsText);
    if (body.aliases !== undefined) body = renamed(body, setPrototypeOf(body.aliases, null));
    if (selector.params && body.args !== undefined) body.args[0] = watched(body.args[0]);
    if (selector.output !== undefined && body.args !== undefined) nameOutput(selector.output, body.args[0]);
    if (selector.needs !== undefined && body.args !== undefined) told.notes = lacking(selector, body.args[0], told);
    const others = selector.needs !== undefined && body.args !== undefined ? otherArgs(selector, body.args[0]) : null;
    const args = 'named' in body ? [body.named] : others ?? (selector.names ? byName(selector, body.args[0]) : body.args);
    if (selector.compared !== undefined && told.notes === '') told.notes = lackingCompared(selector.compared, args);
    return p.apply(entry, holder, args);
  }

  function call(selector, argsText, resultLimit, done) {
    if (selector.every !== undefined) {
      bridge.wait(true);
      return void callEvery(selector.every, argsText, resultLimit, done);
    }
    let value;
    const told = { __proto__: null, notes: '', mayLack: true, who: named(selector) };
    const unknown = bridge.unknownModules;
    try {
      value = applied(selector, argsText, told);
      if (((typeof value === 'object' && value !== null) || typeof value === 'function') && typeof value.then === 'function') {
        bridge.wait(true);
        return void finishLater(value, told, unknown, resultLimit, done);
      }
    } catch (thrown) {
      return done('user_exception', errors.describe(thrown));
    }
    return finish(value, told, unknown, resultLimit, done);
  }

  /** Return whether a row has all that a part needs. */
  function hasAll(part, row) {
    const { needs } = part.selector;
    if (otherArgs(part.selector, row) !== null) return true;
    for (let i = 0; i < needs.length; i++) if (!(needs[i] in row)) return false;
    return true;
  }

  /** Return whether a row has all that at least one of several parts needs. If so, parts for which the row lacks something do not run. */
  function someHasAll(every, argsText) {
    if (every[0].selector.needs === undefined) return false;
    const row = p.parse(argsText).args[0];
    for (let i = 0; i < every.length; i++) if (hasAll(every[i], row)) return true;
    return false;
  }

  /** Return whether a part can run for a row: the row has all needed properties that the code does not test, and at least one needed property. */
  function isAble(part, row) {
    const { needs, tested } = part.selector;
    if (otherArgs(part.selector, row) !== null) return true;
    let found = 0;
    for (let i = 0; i < needs.length; i++) {
      if (needs[i] in row) found++;
      else if (tested === undefined || !has(tested, needs[i])) return false;
    }
    return found > 0 || needs.length === 0;
  }

  /**
   * Return the parts (evaluators) to call for a row. These are the parts without `uses`, if the row suits at least one of them. Otherwise, they are
   * the parts with `uses` for which the row has everything, except those that another of them uses.
   */
  function thatApply(every, argsText) {
    const first = bareList();
    const others = bareList();
    for (let i = 0; i < every.length; i++) {
      const list = every[i].uses === undefined ? first : others;
      list[list.length] = every[i];
    }
    if (others.length === 0) return first;
    const row = p.parse(argsText).args[0];
    for (let i = 0; i < first.length; i++) if (isAble(first[i], row)) return first;
    const used = { __proto__: null };
    const able = bareList();
    for (let i = 0; i < others.length; i++) {
      if (!hasAll(others[i], row)) continue;
      able[able.length] = others[i];
      for (let j = 0; j < others[i].uses.length; j++) used[others[i].uses[j]] = true;
    }
    if (able.length === 0) return first.length > 0 ? first : others;
    const free = bareList();
    for (let i = 0; i < able.length; i++) if (used[able[i].name] !== true) free[free.length] = able[i];
    return free.length > 0 ? free : able;
  }

  /** Return a warning if a row is scored by other functions than those that the code was loaded for. */
  function noteOf(every, parts) {
    if (every[0].uses !== undefined || parts.length === 0 || parts[0].uses === undefined) return '';
    let names = '';
    for (let i = 0; i < parts.length; i++) names += (i > 0 ? ', ' : '') + parts[i].name;
    return '{"code":"several_entries","message":' + p.quote('the row lacks what ' + every[0].name + ' needs, so the score is that of ' + names + '; to use another function, name it in `settings.entry`') + '}';
  }

  /** Call all evaluators of a file that apply to a row, one after another; each has its own outcome. */
  async function callEvery(all, argsText, resultLimit, done) {
    let text = '';
    listed(); // read the lists now, so that modules found missing from here on belong to the evaluator that uses them
    const every = thatApply(all, argsText);
    let notes = noteOf(all, every);
    const mayLack = !someHasAll(every, argsText);
    for (let i = 0; i < every.length; i++) {
      let outcome;
      const lacked = bridge.lackedModules;
      const told = { __proto__: null, notes: '', mayLack };
      try {
        const value = await applied(every[i].selector, argsText, told);
        if (bridge.lackedModules !== lacked) throw goesOn(bridge.lackedModules);
        const encoded = values.encodeResult(value, resultLimit);
        outcome = encoded === null ? '"error":{"code":"result_too_large","message":"the returned value is too large"}' : '"result":' + p.quote(encoded);
      } catch (thrown) {
        const { type, message } = errors.describe(thrown);
        outcome = '"error":{"code":"user_exception","message":' + p.quote(message || type) + ',"type":' + p.quote(type) + '}';
      }
      if (told.notes !== '' && i < NOTES) notes += (notes === '' ? '' : ',') + told.notes;
      text += (i > 0 ? ',' : '') + '{"name":' + p.quote(every[i].name) + ',' + outcome + '}';
    }
    if (text.length > resultLimit) return void done('result_too_large', null);
    done('', '{"kind":"object","value":{"every":[' + text + ']},"nonfinite":[],"unsupported":null,"notes":[' + notes + ']}');
  }

  function goesOn(missing) {
    return new p.Error('the code goes on without ' + missing + ', which was not sent or pinned');
  }

  async function finishLater(promise, told, unknown, resultLimit, done) {
    let value;
    try {
      value = await promise;
    } catch (thrown) {
      done('user_exception', errors.describe(thrown));
      return;
    }
    finish(value, told, unknown, resultLimit, done);
  }

  /** Return a result, unless the row has used unknown packages; `unknown` names those that the code had used before. */
  function finish(value, told, unknown, resultLimit, done) {
    let body;
    try {
      if (bridge.unknownModules !== unknown) throw goesOn(bridge.unknownModules);
      body = values.encodeResult(value, resultLimit, told.notes);
    } catch (thrown) {
      return done('user_exception', errors.describe(thrown));
    }
    return body === null ? done('result_too_large', null) : done('', body);
  }

  /** End a program, and return its exit code as a result. */
  function leave(fallback) {
    return '{"kind":"object","value":{"exit_code":' + (globals.leave(fallback) & 255) + '},"nonfinite":[],"unsupported":null,"notes":[]}';
  }

  // Reporting the functions of a module, from which the entry is chosen ------------------------------------------------

  function inspect() {
    const found = bareList();
    const exported = state.module.exports;
    const esm = isObject(exported) && '__esModule' in exported;
    addOffer(found, 'module', '', esm ? undefined : exported);
    const exportedNames = isObject(exported) ? p.keys(exported) : [];
    for (let i = 0; i < exportedNames.length && i < NEAR; i++) addOffer(found, 'exports', exportedNames[i], read(exported, exportedNames[i]));
    const declaredNames = state.declared === undefined ? [] : p.keys(state.declared);
    for (let i = 0; i < declaredNames.length; i++) addOffer(found, 'declared', declaredNames[i], state.declared[declaredNames[i]]);
    const members = listed();
    for (let i = 0; i < members.length; i++) {
      addOffer(found, 'listed', '', members[i]);
      const offer = found[found.length - 1];
      offer.at = i;
      offer.first = placeOf(members, members[i]);
      for (let j = 0; j < declaredNames.length; j++) if (state.declared[declaredNames[j]] === members[i]) offer.name = declaredNames[j];
    }
    return found;
  }

  function placeOf(list, value) {
    for (let i = 0; i < list.length; i++) if (list[i] === value) return i;
    return -1;
  }

  /** Make an array that inherits nothing, so that it calls neither setters nor a `toJSON` that user code has defined. */
  function bareList() {
    return setPrototypeOf([], null);
  }

  function isObject(value) {
    return (typeof value === 'object' && value !== null) || typeof value === 'function';
  }

  function read(holder, key) {
    try {
      return holder[key];
    } catch {
      return undefined;
    }
  }

  function addOffer(found, where, name, value) {
    if (!isObject(value)) {
      if (value !== undefined || where === 'listed') found[found.length] = { __proto__: null, where, name, kind: typeof value, text: '', length: 0, ownName: '', methods: bareList() };
      return;
    }
    const ownName = read(value, 'name');
    found[found.length] = {
      __proto__: null, where, name, kind: typeof value, text: textOf(value), length: lengthOf(value),
      ownName: typeof value === 'function' && typeof ownName === 'string' ? ownName : '', methods: methodsOf(value),
    };
  }

  function methodsOf(value) {
    const methods = bareList();
    const names = p.parse(bridge.wantedNames);
    for (let i = 0; i < names.length; i++) {
      const method = read(value, names[i]);
      if (typeof method !== 'function') continue;
      methods[methods.length] = { __proto__: null, name: names[i], text: textOf(method), length: lengthOf(method) };
    }
    return methods;
  }

  function lengthOf(value) {
    const length = read(value, 'length');
    return typeof length === 'number' && length >= 0 ? length : 0;
  }

  function textOf(value) {
    return typeof value === 'function' ? p.slice(p.functionText(value), 0, 65_536) : '';
  }

  return {
    __proto__: null, install, start, call, leave,
    describe: errors.describe,
    inspect: () => p.quote(inspect()),
  };
})
