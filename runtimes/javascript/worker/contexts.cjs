// @ts-check
'use strict';
/** Makes contexts: compiles the guest scripts and the user's program once, and runs them in a new realm per slot. */
const vm = require('node:vm');
const { Bridge } = require('./bridge.cjs');
const { compiled } = require('../boot/compiled.cjs');
const { NAMES } = require('./builtins.cjs');
const { Slot } = require('./slot.cjs');

/**
 * @typedef {object} Program
 * @property {string} source the user's code, compiled to a script, with the accessor of its names at the end
 * @property {string} filename as shown in stacks
 * @property {boolean} isAsync whether it awaits at top level
 * @property {string[]} wanted names that may be the entry
 * @property {boolean} perRow whether it runs for each row, and not at load
 * @property {string[]} unknown missing packages that are not well known; they are probably the author's own modules
 */

/** Matches code that may use a global without writing its name. */
const NAMELESS = /\beval\b|\bFunction\b|\bconstructor\b|\bglobalThis\b|\bglobal\b|\bthis\s*\[|\\u/;

/** @type {vm.Script | undefined} */
let guestScript;

function compileGuest() {
  guestScript ??= compiled('guest');
  return guestScript;
}

/**
 * Return the globals that a program may use; defining all of them would double the time to make a context.
 *
 * @param {string} source
 */
function globalsOf(source) {
  return NAMELESS.test(source) ? NAMES : NAMES.filter((name) => source.includes(name));
}

/**
 * Wrap the source without changing the number of a line or, thanks to the column offset, of a column.
 *
 * @param {Program} program
 * @returns {vm.Script}
 */
function compileProgram(program) {
  const head = program.isAsync ? '(async function () {' : '(function () {';
  return new vm.Script(`${head}${program.source}\n})`, { filename: program.filename, columnOffset: -head.length });
}

class Contexts {
  /** @type {Slot | null} */
  #spare = null;

  /**
   * @param {Program} program
   * @param {import('./output.cjs').Output} output
   * @param {import('./integrity.cjs').Integrity} integrity
   * @param {(code: number) => void} exit
   */
  constructor(program, output, integrity, exit) {
    this.script = compileProgram(program);
    this.names = globalsOf(program.source);
    this.wanted = JSON.stringify(program.wanted);
    this.perRow = program.perRow;
    this.unknown = program.unknown;
    this.make = () => new Slot(output, integrity, exit, program.perRow);
  }

  /** @returns {Slot} a context that no row has used */
  take() {
    const slot = this.#spare ?? this.#create();
    this.#spare = null;
    return slot;
  }

  /** Make a context in advance, so that the next row does not have to wait for it. */
  prepare() {
    this.#spare ??= this.#create();
  }

  #create() {
    const slot = this.make();
    slot.context = vm.createContext(/** @type {any} */ (vm.constants.DONT_CONTEXTIFY));
    slot.guest = compileGuest().runInContext(slot.context)(new Bridge(slot, this.names, this.wanted, this.unknown));
    return slot;
  }

  /** @param {Slot} slot @returns {Function} the user's module as a function of the slot's realm */
  moduleFunction(slot) {
    return this.script.runInContext(slot.context);
  }
}

module.exports = { Contexts, compileGuest };
