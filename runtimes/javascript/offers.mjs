// @ts-check
/**
 * Finds functions by name in what the module of an evaluator offers: exports, names of the module, and members of lists of evaluators.
 *
 * @typedef {{name: string, text: string, length: number}} Method
 * @typedef {{where: 'module'|'exports'|'declared'|'listed', name: string, kind: string, text: string, length: number, ownName: string, methods: Method[], at?: number, first?: number}} Offer
 *   `at`: its position in the lists that the code passes to its platform; `first`: the first position of the same value
 * @typedef {{selector: import('./contracts.mjs').Selector, label: string, name: string, text: string, length: number}} Candidate
 */
import { DIALECTS } from './dialects/table.mjs';

/** @param {string} name */
export function isIdentifier(name) {
  return /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(name);
}

/** Return what the module offers, with a name for each member of a list: the name in the list, the member's own name, or a name made from the
 * member's position. @param {Offer[]} offers @param {string} code @returns {Offer[]} */
export function withNames(offers, code) {
  const members = offers.filter((one) => one.where === 'listed');
  const written = members.length === 0 ? [] : DIALECTS.flatMap((one) => one.listed?.(code) ?? []);
  const isWritten = written.length === members.length && written.every(({ text }) => !text.startsWith('...'));
  const taken = new Set(offers.filter((one) => one.where !== 'listed').map((one) => one.name));
  return offers.flatMap((one) => {
    if (one.where !== 'listed') return [one];
    const at = Number(one.at);
    if (!isWritten && one.first !== at) return [];
    const own = isIdentifier(one.ownName) && !taken.has(one.ownName) ? one.ownName : `scorer_${at}`;
    const name = (isWritten && written[at].name) || one.name || own;
    taken.add(name);
    return [{ ...one, name }];
  });
}

/** @param {Offer[]} offers @returns {string[]} */
export function functionNames(offers) {
  return [...new Set(offers.filter((one) => isCallable(one) && isIdentifier(one.name)).map((one) => one.name))];
}

/** @param {Offer[]} offers @returns {import('./candidates.mjs').Function_[]} */
export function functionsOf(offers) {
  return functionNames(offers).map((name) => {
    const { text, length } = /** @type {Candidate} */ (lookUp(offers, name));
    const exported = offers.some((one) => one.where !== 'declared' && one.where !== 'listed' && (one.name === name || (isWhole(one) && one.methods.some((each) => each.name === name))));
    return { name, text, length, exported };
  });
}

/** @param {Offer[]} offers @param {'exports' | 'declared'} where @returns {import('./candidates.mjs').Function_[]} classes, as functions */
export function classesIn(offers, where) {
  const classes = offers.filter((one) => one.where === where && one.kind === 'function' && !isCallable(one));
  const named = classes.map(({ name, ownName, text, length }) => ({ name: name === 'default' ? ownName : name, text, length, exported: where === 'exports' }));
  return named.filter((one) => isIdentifier(one.name) && one.name !== 'default');
}

/** @param {Offer[]} offers @param {string} name @returns {Candidate | null} the first found among members of lists, exports, names of the module, methods */
export function lookUp(offers, name) {
  for (const where of ['listed', 'exports', 'declared']) {
    const offer = offers.find((one) => one.where === where && one.name === name && isCallable(one));
    if (offer) return { selector: { where, name: String(offer.at ?? name) }, label: `function ${name}`, name, text: offer.text, length: offer.length };
  }
  for (const offer of offers) {
    const method = offer.methods.find((one) => one.name === name);
    if (!method || !(isWhole(offer) || offer.name === name || isOnlyHolder(offers, name))) continue;
    return { selector: { where: offer.where, name: offer.name, method: name }, label: `method ${name}`, name, text: method.text, length: method.length };
  }
  return null;
}

/** Return whether one exported object of a file has a method of this name. @param {Offer[]} offers @param {string} name */
function isOnlyHolder(offers, name) {
  return offers.filter((one) => one.where === 'exports' && one.methods.some((each) => each.name === name)).length === 1;
}

/** @param {Offer[]} offers @param {string} [code] @returns {Candidate | null} the one function that the module itself is, or the only member of its `module.exports` */
export function defaultExport(offers, code = '') {
  const members = /\bmodule\.exports\b|(?<![.\w$])exports\./.test(code) ? offers.filter((one) => one.where === 'exports') : [];
  const offer = offers.find((one) => (one.where === 'module' || (one.where === 'exports' && one.name === 'default')) && isCallable(one)) ?? (members.length === 1 ? members.find(isCallable) : undefined);
  if (!offer) return null;
  return { selector: { where: offer.where, name: offer.name }, label: 'the default export', name: offer.ownName || 'default', text: offer.text, length: offer.length };
}

/** @param {Offer} offer @returns {boolean} whether it is what the module exports as a whole */
export function isWhole(offer) {
  return offer.where === 'module' || offer.name === 'default';
}

/** @param {Offer} offer */
export function isCallable(offer) {
  return offer.kind === 'function' && !/^class\b/.test(offer.text);
}
