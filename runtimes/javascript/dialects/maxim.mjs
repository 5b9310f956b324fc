// @ts-check
/** Recognises Maxim evaluators (dialect `maxim`): functions `validate(input, output, expectedOutput, context)`. They get their arguments by name, or all arguments in one object. */
import { parametersOf } from '../parameters.mjs';
import { SHAPED } from './steps.mjs';

const OWN = new Set(['input', 'output', 'expected_output', 'expectedOutput', 'context', 'contextToEvaluate', 'context_to_evaluate']);

/** @type {import('./table.mjs').Dialect} */
export const dialect = {
  contract: 'maxim',
  entries: ['validate'],
  takesOneObject: true,
  byName: true,
  infer(candidate, name, code) {
    const { parameters } = parametersOf(candidate);
    const names = parameters.length === 1 && parameters[0].keys ? parameters[0].keys : parameters.map((one) => one.name);
    if (name !== 'validate' || !names.includes('output') || !names.every((one) => OWN.has(one))) return null;
    if (/\bfunction\s+(?:evaluate|main)\b|\b(?:evaluate|main)\s*=/.test(code)) return null;
    return { step: SHAPED, reason: `${candidate.label} takes ${names.join(', ')}` };
  },
};
