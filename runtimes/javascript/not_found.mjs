// @ts-check
/**
 * Explains why no entry was found, and suggests what to change in the code.
 *
 * @typedef {import('./contracts.mjs').Refusal} Refusal
 * @typedef {import('./offers.mjs').Offer} Offer
 */
import { SCORES, usersOf } from './candidates.mjs';
import { lineForClass, lineForMade } from './classes.mjs';
import { refuse } from './contracts.mjs';
import { isOutput } from './dialects/function.mjs';
import { madeBy } from './facts.mjs';
import { classesIn, functionsOf, isCallable } from './offers.mjs';
import { parametersOf } from './parameters.mjs';
import { declaredNames } from './wanted_names.mjs';

/** @param {Offer[]} offers @param {string[]} names @param {string} code @returns {Refusal} */
export function notFound(offers, names, code) {
  const wanted = names.join(' or ');
  const wrongKind = offers.find((one) => names.includes(one.name) && !isCallable(one));
  if (wrongKind) {
    const what = /^class\b/.test(wrongKind.text) ? 'a class' : `a ${wrongKind.kind}`;
    return refuse('entry_not_found', `${wrongKind.name} is ${what}, not a function`, `define function ${wrongKind.name}(…), or export an instance with such a method`);
  }
  const makers = makersIn(offers, code);
  if (makers.length > 0) {
    const shown = makers.slice(0, MOST_SHOWN).map((one) => `${one.name}(${headOf(one)})`);
    const example = makers.find(({ text }) => [...madeBy(text)?.parameters ?? [], ...madeBy(text)?.keys ?? []].some((each) => each !== null && isOutput(each))) ?? makers[0];
    return refuse('entry_not_found', `no function ${wanted} was found; the code defines functions that make evaluators: ${shown.join(', ')}`, `add \`${lineFor(example)}\` as the last line, with the arguments that ${example.name} takes`);
  }
  const own = classesIn(offers, 'exports');
  const classes = functionsOf(offers).some((one) => one.exported) ? [] : own.length > 0 ? own : classesIn(offers, 'declared');
  const lines = classes.flatMap((one) => lineForClass(one.name, one.text) ?? []);
  if (lines.length > 0) {
    return refuse('entry_not_found', `no function ${wanted} was found; the code defines the class${classes.length > 1 ? 'es' : ''} ${classes.slice(0, MOST_SHOWN).map((one) => one.name).join(', ')}`, `the host does not call classes: add \`${lines[0]}\` as the last line${lines[0].includes('…') ? ', with arguments in place of …' : ''}`);
  }
  const near = nearMisses(offers, code);
  if (near.length === 0 && offers.some((one) => one.name === 'default' && one.kind === 'object')) {
    return refuse('entry_not_found', `no function ${wanted} was found; the default export is an object without it`, 'name the function of the object in `settings.entry`, or export the function by itself');
  }
  const holder = near.length === 0 ? offers.find((one) => one.where === 'exports' && one.kind === 'object' && one.methods.length > 0) : undefined;
  if (holder) {
    const methods = holder.methods.map((one) => one.name);
    return refuse('entry_not_found', `no function ${wanted} was found; the exported object ${holder.name} has ${methods.slice(0, MOST_SHOWN).join(', ')}`, `name one of them in \`settings.entry\`, for example ${methods[0]}`);
  }
  const seen = near.length ? `; the code defines ${near.join(', ')}` : '';
  const exported = near.filter((name) => offers.some((one) => one.where === 'exports' && one.name === name && isCallable(one)));
  const functions = functionsOf(offers);
  const likely = (/** @type {string} */ name) => Number(SCORES.test(name)) * 2 + Number(/verdict/i.test(name)) + Number(usersOf(name, functions).length === 0) - Number(MAKES.test(name));
  const [example] = [...exported, ...(exported.length ? [] : near)].sort((one, other) => likely(other) - likely(one));
  return refuse('entry_not_found', `no function ${wanted} was found${seen}`, near.length > 1 ? `name the evaluator in \`settings.entry\`, for example ${example}` : near.length ? `rename it to ${names[0]}, or name it in \`settings.entry\`` : 'define function evaluate(inputs, outputs, trace) or main(variables)');
}

/** Return the exported functions that make an evaluator, if no exported function scores by itself, in the order of the code. @param {Offer[]} offers @param {string} code @returns {import('./candidates.mjs').Function_[]} */
function makersIn(offers, code) {
  const exported = functionsOf(offers).filter((one) => one.exported && one.name !== 'default');
  const makers = exported.filter((one) => madeBy(one.text) !== null).sort((one, other) => code.indexOf(one.name) - code.indexOf(other.name));
  return exported.some((one) => SCORES.test(one.name) && !makers.includes(one)) ? [] : makers;
}

/** Return the parameters of a function as they are written in a call. @param {{text: string, length: number}} one */
function headOf(one) {
  return parametersOf(one).parameters.filter((each) => !each.rest).map((each) => each.name).slice(0, MOST_SHOWN).join(', ');
}

/** Return a line of code that makes an evaluator, and passes the row to it. @param {import('./candidates.mjs').Function_} maker */
function lineFor(maker) {
  return lineForMade(`${maker.name}(${parametersOf(maker).parameters.length > 0 ? '…' : ''})`, /** @type {NonNullable<ReturnType<typeof madeBy>>} */ (madeBy(maker.text)));
}

/** First words in the names of functions that make something for other functions. */
const MAKES = /^(?:build|create|define|format|load|make|parse|register)[A-Z_]/;
const MOST_SHOWN = 8;

/** @param {Offer[]} offers @param {string} code @returns {string[]} */
function nearMisses(offers, code) {
  const names = [...offers.filter(isCallable).map((one) => one.name), ...declaredNames(code)];
  return [...new Set(names.filter((name) => name !== '' && name !== 'default'))].slice(0, 8);
}
