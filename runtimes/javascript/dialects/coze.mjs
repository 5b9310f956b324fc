// @ts-check
/** Recognises Coze Loop evaluators (dialect `coze`): functions `exec_evaluation(turn)`, which get one object. */
import { NAMED } from './steps.mjs';

/** @type {import('./table.mjs').Dialect} */
export const dialect = {
  contract: 'coze',
  entries: ['exec_evaluation'],
  takesOneObject: true,
  source(code) {
    return code.includes('exec_evaluation') ? `globalThis.EvalOutput ??= class EvalOutput { constructor(score, reason) { this.score = score; this.reason = reason; } };${code}` : null;
  },
  infer(candidate, name) {
    return name === 'exec_evaluation' ? { step: NAMED, reason: candidate.label } : null;
  },
};
