// @ts-check
/** Recognises evaluators of dialect `main`: functions `main(variables)`, which get one object with all variables of the row. */
import { parametersOf } from '../parameters.mjs';
import { OWN } from './steps.mjs';

/** @type {import('./table.mjs').Dialect} */
export const dialect = {
  contract: 'main',
  entries: ['main'],
  takesOneObject: true,
  infer(candidate, name) {
    if (name !== 'main') return null;
    const { required } = parametersOf(candidate);
    if (required > 1) {
      return { code: 'binding_error', message: `main receives one object with all variables, but requires ${required} parameters`, hint: 'write main({completion, target}) or main(variables)' };
    }
    return { step: OWN, reason: `${candidate.label} with one object of variables` };
  },
};
