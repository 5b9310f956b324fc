// @ts-check
/** Recognises Langfuse evaluators (dialect `langfuse`): functions `evaluate(ctx)`, which get one object. The source may have types, but no import or export. */
import { stripTypeScriptTypes } from 'node:module';
import { Script } from 'node:vm';
import { parametersOf } from '../parameters.mjs';
import { PARAMETERS } from './steps.mjs';

/** Matches code that Langfuse may refuse, which is then checked; a false match costs only time. */
const SUSPECT = /\b(?:import|export|enum|namespace|module|constructor|declare|abstract)\b/;

/** Matches code that makes the result of a Langfuse evaluator. Without a match, a method `evaluate(ctx)` does not count as a Langfuse evaluator: its parameter is a column of the row. */
const RETURNS_SCORES = /[{,]\s*["']?scores["']?\s*[:,}]|\.scores\s*=(?!=)/;

/** @type {import('./table.mjs').Dialect} */
export const dialect = {
  contract: 'langfuse',
  entries: ['evaluate'],
  takesOneObject: true,
  infer(candidate, name, code) {
    const { parameters } = parametersOf(candidate);
    if (name !== 'evaluate' || parameters.length !== 1 || parameters[0].rest) return null;
    const [{ name: parameter, keys }] = parameters;
    const hasUsualName = (parameter === 'ctx' || parameter === 'context') && (candidate.selector.method === undefined || RETURNS_SCORES.test(code));
    const sign =
      hasUsualName ? `one parameter, ${parameter}`
      : /\bEvaluationContext\b/.test(code) ? 'one parameter of type EvaluationContext'
      : keys?.includes('observation') ? 'one parameter, and takes observation from it'
      : /\.observation\b/.test(candidate.text) ? 'one parameter, and reads .observation'
      : null;
    return sign && { step: PARAMETERS, reason: `${candidate.label} has ${sign}` };
  },
  refuse(code, language) {
    if (!SUSPECT.test(code)) return null;
    try {
      const plain = language === 'typescript' ? stripTypeScriptTypes(code) : code;
      new Script(`(function () {${plain}\n})`); // This only compiles the code, and never runs it.
    } catch (error) {
      const message = error instanceof Error ? error.message.split('\n')[0] : String(error);
      return { code: 'syntax_error', message: `Langfuse does not run this source: ${message}`, hint: 'Langfuse erases types and puts the rest into a function: leave out import, export, enum, namespace and parameter properties' };
    }
    return null;
  },
};
