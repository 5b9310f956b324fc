// @ts-check
/** Dialect `main`: `main(variables)`, one object with all variables of the row. */
import { parametersOf } from '../parameters.mjs';

/** @type {import('./table.mjs').Dialect} */
export const dialect = {
  contract: 'main',
  entry: 'main',
  takesOneObject: true,
  infer(candidate, name) {
    if (name !== 'main') return null;
    const { required } = parametersOf(candidate);
    if (required > 1) {
      return { code: 'binding_error', message: `main receives one object with all variables, but requires ${required} parameters`, hint: 'write main({completion, target}) or main(variables)' };
    }
    return { reason: `${candidate.label} with one object of variables` };
  },
};
