// @ts-check
/** Recognises evaluators of the legacy dialect `evaluate-v1`: functions `evaluate(appParams, inputs, output, correctAnswer)`. */
import { parametersOf } from '../parameters.mjs';
import { OWN } from './steps.mjs';

const FOURTH = /^_?(correct_?answer|ground_?truth|expected|target|reference|datapoint|label)s?$/i;
const FIRST = /^_?(app_?params|app_?config|params)$/i;

/** @type {import('./table.mjs').Dialect} */
export const dialect = {
  contract: 'evaluate-v1',
  entries: ['evaluate'],
  takesOneObject: false,
  infer(candidate, name) {
    const { parameters, required, counted } = parametersOf(candidate);
    if (name === 'main' || counted < 4 || required > 4) return null;
    return required === 4 || isLegacy(parameters) ? { step: OWN, reason: `${candidate.label} with 4 parameters` } : null;
  },
};

/** Return whether the parameters are those of the legacy dialect. A fourth parameter with a default may be the author's own option, so its name is checked. @param {{name: string}[]} parameters */
function isLegacy(parameters) {
  return FIRST.test(parameters[0].name) || FOURTH.test(parameters[3].name);
}
