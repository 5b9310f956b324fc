// @ts-check
'use strict';

const OWN_FILE = /^(?:[./#]|[@~]\/)/;

/** Return whether a specifier names a file of the author's: by its path, below `@/` or `~/`, or by a name that its package.json defines (`#lib`). @param {string} specifier */
function isOwnFile(specifier) {
  return OWN_FILE.test(specifier);
}

module.exports = { isOwnFile };
