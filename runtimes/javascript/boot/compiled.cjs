// @ts-check
'use strict';
/** Reads a script, with its compiled code, that `build.mjs` wrote. If V8 refuses code that another version of Node compiled, V8 compiles the script again. */
const fs = require('node:fs');
const path = require('node:path');
const vm = require('node:vm');

/** @param {string} name @returns {any} the value of the script */
function compiled(name) {
  const file = path.join(__dirname, name);
  return new vm.Script(fs.readFileSync(`${file}.js`, 'latin1'), { filename: `runner:${name}`, cachedData: fs.readFileSync(`${file}.code`) });
}

module.exports = { compiled };
