// @ts-check
/** Dialect `phoenix`: `evaluate({ output, reference, input, metadata })`. Phoenix refuses an async arrow; it runs here. */
import { parametersOf } from '../parameters.mjs';
import { PARAMETERS } from './steps.mjs';

const NAMES = new Set(['output', 'reference', 'input', 'metadata']);

/** @type {import('./table.mjs').Dialect} */
export const dialect = {
  contract: 'phoenix',
  entries: ['evaluate'],
  takesOneObject: true,
  infer(candidate, name) {
    const { parameters } = parametersOf(candidate);
    const keys = parameters.length === 1 ? parameters[0].keys : null;
    if (name !== 'evaluate' || keys === null || keys.length === 0 || keys.some((key) => !NAMES.has(key))) return null;
    if (!keys.includes('output') && !keys.includes('reference')) return null;
    return { step: PARAMETERS, reason: `${candidate.label} takes { ${keys.join(', ')} }` };
  },
};
