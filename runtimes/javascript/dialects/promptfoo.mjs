// @ts-check
/** Recognises promptfoo assertions (dialect `promptfoo`): `get_assert(output, context)`, a default export, or an inline assert (an expression, or the body of a function). */
import { Script } from 'node:vm';
import { parametersOf } from '../parameters.mjs';
import { NAMED_SCORES, readsRow } from './function.mjs';
import { ANY_NAME, NAMED, OWN, SHAPED } from './steps.mjs';

const ENTRY = 'get_assert';
const INLINE_CHARS = 20_000;
/** A default export whose first parameter has one of these names is not an assert. */
const OTHERS = /^(?:inputs?|variables|vars|row|args|props|event|ctx)$/;
/** A default export whose second parameter has one of these names is not an assert. */
const TRUTHS = /^(?:expected\w*|reference\w*|ground_?[tT]ruth|gold\w*|target|correct\w*|ideal)$/;
const MODULE = /\bmodule\.exports\b|\bexports\.|^\s*(?:export|import)\b/m;
const FUNCTION = /^\s*(?:async\s*)?(?:function\b|class\b|\([^()]*\)\s*(?::[^=]*)?=>|[\w$]+\s*=>)/;
/** Matches an inline assert that is written as a function of the output, which promptfoo would refuse. */
const ARROW = /^\s*(?:async\s*)?(?:output|\(\s*output\s*(?:,\s*(?:context|\{[^{}]*\})\s*)?\))\s*=>/;
/** Matches a function at the start of a line, which shows that the code is a file of functions, not the body of one function. */
const DEFINES = /^(?:async\s+)?function\b|^(?:const|let|var)\s+[\w$]+\s*=\s*(?:async\s*)?(?:function\b|[\w$]+\s*=>|\([^()]*\)\s*=>)/m;
const COMMENTS = /^(?:\s|\/\/[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/)+/;
/** Matches the parameters of an assert that takes the context. */
const BESIDE = /\(\s*output\b[^(),]{0,100},\s*context\b/;
const HEAD = `function ${ENTRY}(output, context, process = { ...globalThis.process, mainModule: { require } }) {`;

/** @type {import('./table.mjs').Dialect} */
export const dialect = {
  contract: 'promptfoo',
  entries: [ENTRY],
  takesOneObject: false,
  takesDefault: true,
  takesAnyName: /\bcontext\b/,
  infer(candidate, name, code) {
    if (name === ENTRY) return isInline(code) ? { step: SHAPED, reason: 'the code is an inline assert' } : { step: NAMED, reason: candidate.label };
    const { parameters } = parametersOf(candidate);
    if (candidate.name === 'evaluate' || candidate.name === 'main' || parameters.length < 1 || parameters.length > 2) return null;
    if (readsRow(candidate) || parameters[0].keys !== null || parameters[0].rest || OTHERS.test(parameters[0].name) || NAMED_SCORES.test(parameters[0].name) || TRUTHS.test(parameters[1]?.name ?? '')) return null;
    return { step: name === 'default' ? SHAPED : isAssert(parameters, code) ? ANY_NAME : OWN, reason: `${candidate.label} takes (${parameters.map((one) => one.name).join(', ')})` };
  },
  source(code, isDeclared) {
    if (!isInline(code, isDeclared)) return null;
    if (/\{\{|\{%/.test(code)) return `${HEAD} return (${fill})(${JSON.stringify(code)}, context.vars ?? {}, (text) => new Function('output', 'context', 'process', (${body})(text))(output, context, process)); }`;
    return `${HEAD}${body(code)}\n}`;
  },
};

/** Return whether a function of any name has the parameters of an assert. If one function of the code takes the context, the others need not take it. @param {import('../parameters.mjs').Parameter[]} parameters @param {string} code */
function isAssert([first, second, ...more], code) {
  if (more.length > 0 || first?.name !== 'output' || first.keys !== null) return false;
  return second === undefined ? BESIDE.test(code) : second.name === 'context' && second.keys === null;
}

/**
 * Return whether the code is not a module: an expression of output and context, or a body with `return`. If promptfoo is
 * declared, other statements are a body, too; such a body returns nothing, which is an error in promptfoo.
 * @param {string} code @param {boolean} [isDeclared]
 */
function isInline(code, isDeclared = false) {
  if (code.length > INLINE_CHARS || MODULE.test(code) || (!isDeclared && !/\b(?:output|context)\b/.test(code))) return false;
  const text = code.replace(/\{\{.*?\}\}/g, '0');
  if (ARROW.test(text)) return compiles(`(${text.trim().replace(/;$/, '')}\n)`);
  if (!FUNCTION.test(text.replace(COMMENTS, '')) && compiles(`(${text.trim().replace(/;$/, '')}\n)`)) return true;
  if (!/\breturn\b/.test(text)) return (isDeclared && !DEFINES.test(text) && compiles(text)) || /^\s*(?:const|let|var)\b[^\n]*;[^\n;]+;?\s*$/.test(text) && compiles(text);
  return !compiles(text) && compiles(`(function () {${text}\n})`);
}

/** @param {string} text */
function compiles(text) {
  try {
    new Script(text); // This only compiles the code, and never runs it.
    return true;
  } catch {
    return false;
  }
}

/** Return the body of a function for an inline assert. The code of the function below is also run inside a context, so it uses nothing else in this
 * file. @param {string} code */
function body(code) {
  const text = code.trim();
  if (/^(?:async\s*)?(?:output|\(\s*output\s*(?:,\s*(?:context|\{[^{}]*\})\s*)?\))\s*=>/.test(text)) return ` return (${text.replace(/;$/, '')}\n)(output, context);`;
  if (text.includes('\n')) return code;
  if (!/^(?:const|let|var)\s/.test(text)) return /^return\b/.test(text) ? text : ` return ${text}`;
  const plain = text.replace(/;$/, '');
  const last = plain.lastIndexOf(';');
  return last < 0 || /^\s*return\b/.test(plain.slice(last + 1)) ? text : `${plain.slice(0, last + 1)} return ${plain.slice(last + 1).trim()}`;
}

/** Put variables into the template of an inline assert and run it; this works inside a context too. @param {string} text @param {any} vars @param {(text: string) => any} run */
function fill(text, vars, run) {
  /** @param {any} value @returns {string} */
  const shown = (value) => (value === null || value === undefined ? '' : String(value));
  if (/\{%|\{#/.test(text)) throw new SyntaxError('a template may contain only the path of a variable, such as {{name}} or {{a.b}}, not {% %} or {# #}: read context.vars in the code instead');
  const filled = text.replace(/\{\{(.*?)\}\}/g, (all, inner) => {
    const path = inner.trim();
    if (!/^[\p{L}_$][\p{L}\p{N}_$-]*(?:\.[\p{L}\p{N}_$-]+|\[(?:\d+|'[^']*'|"[^"]*")\])*$/u.test(path)) throw new SyntaxError(`a template may contain only the path of a variable, not ${all}: read context.vars in the code instead`);
    const keys = path.replace(/\[(?:'([^']*)'|"([^"]*)"|(\d+))\]/g, '.$1$2$3').split('.');
    return shown(keys.reduce((/** @type {any} */ at, /** @type {string} */ key) => at?.[key], vars));
  });
  return run(filled);
}
