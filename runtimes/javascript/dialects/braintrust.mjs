// @ts-check
/** Dialect `braintrust`: `handler({ input, output, expected, metadata, … })`, one object. */
import { parametersOf } from '../parameters.mjs';
import { NAMED, PARAMETERS } from './steps.mjs';

const KEYS = new Set(['input', 'output', 'expected', 'metadata', 'trace', 'id', 'tags']);

/** Declarations with the type of a scorer of Braintrust or autoevals. */
const TYPED = /\b(?:const|let)\s+([\w$]+)\s*:\s*(?:Eval)?Scorer\b/;
/** A declaration of such a type in the code itself. */
const OWN_TYPE = /\b(?:type|interface)\s+(?:Eval)?Scorer\b(?:\s*<[^<>=]*>)?\s*[={]/;

/** @type {import('./table.mjs').Dialect} */
export const dialect = {
  contract: 'braintrust',
  entries: ['handler'],
  takesOneObject: true,
  takesAnyName: TYPED,
  infer(candidate, name, code) {
    const { parameters } = parametersOf(candidate);
    if (name !== 'handler' && !OWN_TYPE.test(code) && [...code.matchAll(new RegExp(TYPED, 'g'))].some((one) => one[1] === name)) return { step: PARAMETERS, reason: `${candidate.label} has the type of a scorer` };
    if (name !== 'handler' || parameters.length !== 1 || parameters[0].rest) return null;
    const keys = parameters[0].keys ?? [];
    if (!keys.every((key) => KEYS.has(key)) || /\bfunction\s+(?:evaluate|main)\b|\b(?:evaluate|main)\s*=/.test(code)) return null;
    return { step: NAMED, reason: `${candidate.label} takes ${keys.length ? keys.join(', ') + ' of ' : ''}one object` };
  },
};
