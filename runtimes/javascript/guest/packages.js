/*
 * Makes the `require` of one context, for modules that are not in its bundle: builtins, and files of the package set. A
 * module that it loads runs once in this context.
 */
(function (p, bridge, globals) {
  'use strict';
  const loaded = { __proto__: null };

  /** @param {string} from the file whose `require` it is */
  function requireFrom(from) {
    function require(id) {
      if (typeof id !== 'string') throw new p.TypeError('The "id" argument must be of type string');
      const builtin = globals.builtin(id);
      if (builtin !== undefined) return builtin;
      const client = bridge.clientOf(id);
      return client !== null && bridge.locate(id, from) === '' ? later(client, id) : load(find(id, from));
    }
    require.resolve = (id) => (bridge.isBuiltin(id) ? id : find(p.String(id), from));
    require.resolve.paths = () => [];
    require.cache = {};
    return require;
  }

  /** Names of methods of clients that do not call a model. */
  const CONFIGURED = /^(?:bind|bindTools|fromMessages|fromTemplate|pipe|with[A-Z]\w*)$/;
  const SETUP = /^(?:Eval|config|default|init\w*|login|wrap\w*|create[A-Z]\w*|openai|anthropic|google|traceable|observe|traced|tool|dynamicTool|jsonSchema)$/;

  /**
   * Make a placeholder for a part of a package that is not pinned. It can be read, constructed and set up. Calling
   * anything else, or using it as a value, throws an error that names the pin.
   *
   * @param {string} client the package
   * @param {string} path
   */
  function later(client, path) {
    const name = path.slice(path.lastIndexOf('.') + 1);
    const missing = () => (bridge.lacks(client), new p.Error(path + ' needs the npm package ' + client + ', which is not pinned'));
    return new Proxy(function () {}, {
      get(_target, key) {
        if (key === 'then' || key === '__esModule') return key === 'then' ? undefined : false;
        if (typeof key === 'symbol') throw missing();
        return later(client, path + '.' + key);
      },
      construct: () => later(client, 'new ' + path + '()'),
      apply(_target, _self, args) {
        if (CONFIGURED.test(name)) return later(client, path + '()');
        if (!SETUP.test(name)) throw missing();
        return typeof args[0] === 'function' ? args[0] : later(client, path + '()');
      },
    });
  }

  function find(id, from) {
    const file = bridge.locate(id, from);
    if (file !== '') return file;
    bridge.lacks(id);
    const error = new p.Error("Cannot find module '" + id + "'");
    error.code = 'MODULE_NOT_FOUND';
    throw error;
  }

  function load(file) {
    if (loaded[file] !== undefined) return loaded[file].exports;
    const module = { exports: {}, id: file, filename: file, loaded: false, children: [], paths: [] };
    loaded[file] = module;
    try {
      fill(module, bridge.open(file));
    } catch (thrown) {
      delete loaded[file];
      throw thrown;
    }
    module.loaded = true;
    return module.exports;
  }

  function fill(module, opened) {
    switch (opened.kind) {
      case 'failed': {
        const error = new p.Error(opened.message);
        error.code = opened.code;
        throw error;
      }
      case 'json': module.exports = p.parse(opened.text); break;
      case 'module': {
        globals.complete();
        const { filename } = module;
        module.require = requireFrom(filename);
        p.apply(opened.run, module.exports, [module.exports, module.require, module, filename, opened.folder]);
        break;
      }
      default: module.exports = globals.fromNode(opened.value);
    }
  }

  return { __proto__: null, requireFrom };
})
