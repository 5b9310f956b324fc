// @ts-check
'use strict';

const OWN_FILE = /^(?:[./]|[@~]\/)/;

/** Return whether a specifier names a file of the author's: by its path, or below `@/` or `~/`. @param {string} specifier */
function isOwnFile(specifier) {
  return OWN_FILE.test(specifier);
}

module.exports = { isOwnFile };
