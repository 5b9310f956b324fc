// @ts-check
/** Recognises LangSmith evaluators (dialect `langsmith`): `performEval(run, example)`, and functions for the SDK, which get one object and the example. */
import { parametersOf } from '../parameters.mjs';
import { ANY_NAME, NAMED, PARAMETERS } from './steps.mjs';

const PAGES = ['performEval', 'perform_eval'];
const SUPPORTED = new Set(['run', 'example', 'inputs', 'outputs', 'referenceOutputs', 'attachments']);
const SHARED = new Set(['inputs', 'outputs', 'referenceOutputs']);

/** @type {import('./table.mjs').Dialect} */
export const dialect = {
  contract: 'langsmith',
  entries: [...PAGES, 'evaluate'],
  takesOneObject: true,
  takesDefault: true,
  takesAnyName: /\b(?:referenceOutputs|outputs|example)\b/,
  infer(candidate, name) {
    if (PAGES.includes(name)) return { step: NAMED, reason: candidate.label };
    const { parameters } = parametersOf(candidate);
    const names = parameters.map((one) => one.name);
    if (names.length === 2 && names[0] === 'run' && names[1] === 'example') return { step: PARAMETERS, reason: `${candidate.label} has the parameters run, example` };
    const keys = parameters.length <= 2 ? parameters[0]?.keys ?? [] : [];
    if (keys.length === 0 || !keys.every((key) => SUPPORTED.has(key))) return null;
    const reason = `${candidate.label} takes one object with ${keys.join(', ')}`;
    if (keys.some((key) => key === 'referenceOutputs' || key === 'example' || key === 'run')) return { step: PARAMETERS, reason };
    return name !== 'evaluate' && keys.includes('outputs') && keys.every((key) => SHARED.has(key)) ? { step: ANY_NAME, reason } : null;
  },
};
