// @ts-check
/** Writes lines of code that call what the host does not call by itself: a method of a class, or an evaluator that a function makes. */
import { SCORES } from './candidates.mjs';
import { isOutput } from './dialects/function.mjs';
import { madeBy } from './facts.mjs';
import { withoutUnderscore } from './parameters.mjs';
import { parse } from './parser.mjs';

/** @typedef {import('./nodes.mjs').Node} Node */
/** @typedef {NonNullable<ReturnType<typeof madeBy>>} Made */

/**
 * Return a line that defines `evaluate` by a method of a class: if possible by a method that takes the output, or makes something that does. Return null if the class
 * has no public method.
 *
 * @param {string} name @param {string} text the class
 */
export function lineForClass(name, text) {
  const members = membersOf(text);
  const methods = methodsIn(members, name, text);
  const worth = (/** @type {(typeof methods)[0]} */ { name: own, parameters, made }) => Number([...parameters, ...made?.parameters ?? []].some((one) => one !== null && isOutput(one))) * 2 + Number(SCORES.test(own));
  const [best] = methods.toSorted((one, other) => worth(other) - worth(one));
  if (best === undefined) return null;
  const takes = (members.find((one) => one.kind === 'constructor')?.value.params.length ?? 0) > 0 ? '…' : '';
  const whole = `${best.of ?? `new ${name}(${takes})`}.${best.name}`;
  return best.made ? lineForMade(`${whole}(${best.parameters.length > 0 ? '…' : ''})`, best.made) : `${HEAD}${whole}(${given(best.parameters, [])})`;
}

/** Return whether a method of a class makes an evaluator that takes the output. @param {string} text the class */
export function makesEvaluators(text) {
  return methodsIn(membersOf(text), '', text).some(({ made }) => made?.parameters.some((one) => one !== null && isOutput(one)));
}

/** @param {string} text the class @returns {Node[]} */
function membersOf(text) {
  return parse(`(${text})`)?.body[0]?.expression?.body?.body ?? [];
}

/** Return the public methods of a class. @param {Node[]} members @param {string} name @param {string} text the class */
function methodsIn(members, name, text) {
  return members.flatMap((one) => {
    const isPublic = one.type === 'MethodDefinition' && one.kind === 'method' && !one.computed && /^[a-z$]/i.test(one.key.name ?? '');
    const parameters = /** @type {(string | null)[]} */ (isPublic ? one.value.params.map(nameOf) : []);
    return isPublic ? { of: one.static ? name : null, name: String(one.key.name), parameters, made: madeBy(text.slice(one.key.start - 1, one.value.end - 1)) } : [];
  });
}

/** Return a line that defines `evaluate` by what a call makes. @param {string} call @param {Made} made */
export function lineForMade(call, { method, parameters, keys }) {
  return `${HEAD}${call}${method && `.${method}`}(${given(parameters, keys)})`;
}

const HEAD = 'export const evaluate = (inputs, outputs) => ';

/** Return the parts of the row as arguments. @param {(string | null)[]} parameters @param {string[]} keys what the function reads from its only parameter */
function given(parameters, keys) {
  const key = parameters.length === 1 ? keys.find(isOutput) : undefined;
  if (key !== undefined) return `{ ...inputs, ${key}: outputs }`;
  if (parameters.length === 1 && parameters[0] === null) return 'inputs';
  const output = parameters.find((one) => one !== null && isOutput(one)) ?? parameters[0];
  return parameters.map((one) => (one === output ? 'outputs' : `inputs.${withoutUnderscore(one ?? 'expected')}`)).join(', ');
}

/** @param {Node} pattern @returns {string | null} the name of a parameter that is not taken apart */
function nameOf(pattern) {
  return (pattern.left ?? pattern).name ?? null;
}
