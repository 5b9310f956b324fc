// @ts-check
/** Recognises Phoenix evaluators (dialect `phoenix`): functions `evaluate({ output, reference, input, metadata })`. The object may have other properties, too. Phoenix refuses async arrow functions, but they run here. */
import { parametersOf } from '../parameters.mjs';
import { PARAMETERS, SOME_NAMES } from './steps.mjs';

const NAMES = new Set(['output', 'reference', 'input', 'metadata']);

/** @type {import('./table.mjs').Dialect} */
export const dialect = {
  contract: 'phoenix',
  entries: ['evaluate'],
  takesOneObject: true,
  infer(candidate, name) {
    const { parameters } = parametersOf(candidate);
    const keys = parameters.length === 1 ? parameters[0].keys : null;
    if (name !== 'evaluate' || keys === null || !keys.some((key) => NAMES.has(key))) return null;
    const certain = keys.every((key) => NAMES.has(key)) && (keys.includes('output') || keys.includes('reference'));
    return { step: certain ? PARAMETERS : SOME_NAMES, reason: `${candidate.label} takes { ${keys.join(', ')} }` };
  },
};
