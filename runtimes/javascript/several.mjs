// @ts-check
/**
 * Makes one entry of several evaluators of a file, which are called with the same row.
 *
 * @typedef {import('./contracts.mjs').Found} Found
 * @typedef {import('./contracts.mjs').Refusal} Refusal
 * @typedef {import('./offers.mjs').Candidate} Candidate
 * @typedef {import('./offers.mjs').Offer} Offer
 */
import { shown, usedBy, usersOf } from './candidates.mjs';
import { BY_PARAMETERS, declaredAs, mostCertain, refuse } from './contracts.mjs';
import { DIALECTS } from './dialects/table.mjs';
import { notFound } from './not_found.mjs';
import { functionNames, functionsOf, lookUp } from './offers.mjs';
import { othersOfColumns } from './scoring.mjs';
import { EVERY, MOST_NAMES } from './wanted_names.mjs';

/** Add the functions to call for rows that lack what the found evaluators need; if only one was found, only functions that it uses. @param {Found | Refusal} answer @param {Offer[]} offers @returns {Found | Refusal} */
export function withOthers(answer, offers) {
  if (!('contract' in answer) || answer.contract !== BY_PARAMETERS.contract) return answer;
  const own = answer.selector.every?.map((one) => one.name) ?? [answer.entry];
  const used = answer.selector.every ? null : usedBy(answer.entry, functionsOf(offers));
  const others = othersOfColumns(offers, own).filter((one) => used === null || used.has(one.name));
  const parts = answer.selector.every ?? [{ name: answer.entry, selector: answer.selector }];
  if (others.length === 0 || parts.some((one) => !one.selector.needs?.length)) return answer;
  return {
    ...answer, entry: EVERY, functions: [...answer.functions, ...others.flatMap((one) => one.found.functions)],
    parameters: answer.selector.every ? answer.parameters : [`${answer.entry}(${answer.parameters.join(', ')})`],
    selector: { where: 'every', name: EVERY, every: [...parts, ...others.map(({ name, found: one, uses }) => ({ name, selector: one.selector, uses }))] },
  };
}

/** Return one entry that calls all evaluators of a file: public functions that no other one of them uses. @param {Offer[]} offers @param {string} contract @param {string} code @returns {Found | Refusal} */
export function findEvery(offers, contract, code) {
  const names = functionNames(offers).filter((name) => !/^_|^default$/.test(name));
  const every = /** @type {{name: string, found: Found}[]} */ ([]);
  const notes = [];
  for (const name of names.slice(0, MOST_NAMES)) {
    const candidate = /** @type {Candidate} */ (lookUp(offers, name));
    if (usersOf(name, functionsOf(offers)).length > 0) continue;
    const best = contract === 'auto' ? mostCertain(candidate, name, code) : declaredAs(candidate, contract);
    const answer = 'found' in best ? best.found : best;
    if ('code' in answer) notes.push({ code: 'not_an_entry', message: `${name} is not called, because it is not an evaluator: ${answer.message}` });
    else every.push({ name, found: answer });
  }
  return every.length === 0 ? notFound(offers, ['evaluate'], code) : together(every, notes);
}

/** Return one entry that calls several evaluators with the same row. @param {{name: string, found: Found, uses?: string[]}[]} every @param {{code: string, message: string}[]} notes @returns {Found | Refusal} */
export function together(every, notes) {
  const contracts = [...new Set(every.map((one) => one.found.contract))];
  if (contracts.length > 1) {
    const told = every.slice(0, 10).map((one) => `${one.name} (${one.found.contract})`);
    return refuse('entry_ambiguous', `the evaluators have different contracts: ${told.join(', ')}`, `set \`contract\` to one of ${contracts.join(', ')}`);
  }
  const { contract: own, source, reason } = every[0].found;
  return {
    contract: own, source, reason: `${every.length} evaluators: ${every.map((one) => one.name).join(', ')}; ${reason}`, entry: EVERY, notes,
    parameters: every.map(({ name, found: one }) => `${name}(${one.parameters.join(', ')})`),
    functions: every.flatMap(({ found: one }) => one.functions),
    selector: { where: 'every', name: EVERY, every: every.map(({ name, found: one, uses }) => ({ name, selector: one.selector, ...(uses && { uses }) })) },
  };
}

/** Return one entry that calls all evaluators in the list that the code passes to its platform. @param {Found[]} equal @param {Offer[]} offers @param
 * {string} code @param {(text: string) => number | null} lineOf @returns {Found | Refusal} */
export function ofList(equal, offers, code, lineOf) {
  const members = offers.filter((one) => one.where === 'listed').map(({ name }) => ({ name, text: name }));
  const written = DIALECTS.find((one) => one.contract === equal[0].contract)?.listed?.(code) ?? [];
  const listed = members.length > 0 ? members : written;
  const functions = functionsOf(offers);
  const every = [...new Set(listed.map((one) => one.name))].flatMap((name) => equal.filter((one) => one.entry === name).slice(0, 1).map((found) => ({ name, found })));
  const lacking = listed.filter((one) => !every.some(({ name }) => name === one.name));
  const notes = lacking.map(({ text }) => ({ code: 'entry_left_out', message: `${text.slice(0, 80)} is in the list of evaluators, but is not called, because it is not a function of the loaded code` }));
  if (every.length === 0) return notFound(offers, listed.map((one) => one.text), code);
  if (every.length === 1) return { ...every[0].found, entry: every[0].name, notes };
  const names = every.map((one) => one.name);
  return together(every, [{ code: 'several_entries', message: `the score is the mean of ${shown(names, functions, lineOf)}; to use one of them, name it in \`settings.entry\`` }, ...notes]);
}
