// @ts-check
/** Recognises evaluators of dialect `evaluate`: functions `evaluate(inputs, outputs, trace)`, which get their arguments by position. A function with two parameters gets the first two arguments. A function without parameters may read `arguments`. */
import { parametersOf } from '../parameters.mjs';
import { OWN } from './steps.mjs';

const MOST = 4; // maximum number of parameters; the legacy dialect, which takes four, is tried first

/** @type {import('./table.mjs').Dialect} */
export const dialect = {
  contract: 'evaluate',
  entries: ['evaluate'],
  takesOneObject: false,
  infer(candidate, name) {
    if (name === 'main') return null;
    const { parameters, required, counted } = parametersOf(candidate);
    if (counted === 0 && parameters.length > 0) {
      return { code: 'entry_ambiguous', message: `${candidate.label} takes (...${parameters[0].name}), so it may be evaluate (3 arguments) or evaluate-v1 (4 arguments)`, hint: 'set `contract`, or name the parameters' };
    }
    if (required > MOST) {
      return { code: 'binding_error', message: `${candidate.label} requires ${required} parameters (${parameters.map((one) => one.name).join(', ')}); evaluate takes 3 and evaluate-v1 takes 4`, hint: 'write evaluate(inputs, outputs, trace)' };
    }
    if (parameters.length === 0 && !/\barguments\b|\[native code\]/.test(candidate.text)) {
      return { code: 'binding_error', message: `${candidate.label} takes no parameters, so it cannot see the row; evaluate is called with three arguments: inputs, outputs, trace`, hint: 'write evaluate(inputs, outputs, trace); for code of another platform set `contract`' };
    }
    if (parameters.length === 1) {
      return { code: 'binding_error', message: `${candidate.label} takes one parameter, ${parameters[0].name}; evaluate is called with three arguments: inputs, outputs, trace`, hint: 'write evaluate(inputs, outputs, trace), or main({…}) with the names of the variables; for code of another platform set `contract`' };
    }
    const count = Math.min(counted, 3);
    return { step: OWN, reason: `${candidate.label} with ${count} parameter${count === 1 ? '' : 's'}` };
  },
};
