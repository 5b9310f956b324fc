// @ts-check
/**
 * Replaces functions of packages that only wrap scorers. Such a package needs a database, a test runner or a framework for agents, which its scorers
 * do not need. Scorers get rows in the same form as from the package. If a step of a scorer calls a model, an error is thrown.
 *
 * Each function below is added to the user's code as text, so it uses nothing else in this file.
 */

export const PREFIX = '__evaluator_host_'; // start of the names of functions that make stand-ins
const IMPORT = /^([ \t]*)import\s+(?!type\b)\{([^{}]*)\}\s*from\s*(["'])(?:npm:)?([^"'\n]+)\3/gm;
const SPECIFIER = /^([\w$]+)(?:\s+as\s+([\w$]+))?$/;
const VERSION = /(?<=.)@\d[\w.+-]*/;

const ofEvalite = () => {
  const scorer = (/** @type {any} */ { name, scorer: score }) => async (/** @type {any} */ { input, output, expected }) => {
    const result = await score({ input, output, expected });
    return result !== null && typeof result === 'object' ? { name, ...result } : { name, score: result };
  };
  const same = (/** @type {any} */ one) => one;
  return { createScorer: scorer, scorer, evalite: () => {}, wrapAISDKModel: same, traceAISDKModel: same };
};

const ofVitestEvals = () => {
  const createJudge = (/** @type {string} */ name, /** @type {any} */ judge) => async (/** @type {any} */ row) => {
    const result = await judge({ ...row, output: row.output });
    return result !== null && typeof result === 'object' ? { name, ...result } : { name, score: result };
  };
  const nothing = () => {};
  return { createJudge, scorer: (/** @type {any} */ one) => one, createHarness: nothing, describeEval: nothing };
};

const ofAxiom = () => {
  const scorer = (/** @type {string} */ name, /** @type {any} */ score) => async (/** @type {any} */ row) => {
    const result = await score({ ...row, output: row.output });
    return result !== null && typeof result === 'object' ? { name, ...result } : { name, score: result };
  };
  return { Eval: () => {}, Scorer: scorer, createScorer: scorer };
};

const ofMastra = () => {
  const stepped = (/** @type {any} */ config, /** @type {[string, any][]} */ steps) => {
    const scorer = async (/** @type {any} */ row) => {
      const run = { ...row, output: row.output, groundTruth: row.groundTruth ?? row.expected };
      const results = /** @type {Record<string, any>} */ ({});
      let score;
      let reason;
      for (const [name, step] of steps) {
        if (name === 'generateReason') {
          if (typeof step === 'function') reason = await step({ run, results, score });
          continue;
        }
        if (typeof step !== 'function') throw new Error(`${config.id ?? config.name} asks a model in ${name}, which evaluators cannot do here: write the step as a function`);
        const value = await step({ run, results });
        results[`${name}StepResult`] = value;
        if (name === 'generateScore') score = value;
      }
      return { name: config.name ?? config.id, score, metadata: { reason } };
    };
    for (const name of ['preprocess', 'analyze', 'generateScore', 'generateReason']) {
      Object.defineProperty(scorer, name, { value: (/** @type {any} */ step) => stepped(config, [...steps, [name, step]]) });
    }
    return scorer;
  };
  return { createScorer: (/** @type {any} */ config) => stepped(config, []) };
};

const ofMastraUtils = () => {
  const textOf = (/** @type {any} */ value) => {
    if (typeof value === 'string') return value;
    const whole = value?.content ?? value?.text;
    if (typeof whole === 'string' && whole !== '') return whole;
    const parts = Array.isArray(value) ? value : value?.parts ?? [];
    return parts.findLast((/** @type {any} */ one) => one?.type === 'text')?.text ?? '';
  };
  const ofRole = (/** @type {any} */ messages, /** @type {string} */ role) => messages
    .filter((/** @type {any} */ one) => one?.role === role).map((/** @type {any} */ one) => textOf(one.content)).filter(Boolean);
  const calledIn = (/** @type {any} */ { content }) => {
    const inParts = (content?.parts ?? []).filter((/** @type {any} */ one) => one.type === 'tool-invocation').map((/** @type {any} */ one) => one.toolInvocation);
    const known = new Set(inParts.map((/** @type {any} */ one) => one?.toolCallId));
    return [...(content?.toolInvocations ?? []).filter((/** @type {any} */ one) => !known.has(one?.toolCallId)), ...inParts]
      .filter((/** @type {any} */ one) => one?.toolName && ['result', 'call', 'output-error'].includes(one.state));
  };
  return {
    extractAgentResponseMessages: (/** @type {any[]} */ output) => output.filter((one) => one.role === 'assistant').map((one) => textOf(one.content)),
    extractInputMessages: (/** @type {any} */ input) => (input?.inputMessages ?? []).map((/** @type {any} */ one) => textOf(one.content)),
    extractToolCalls: (/** @type {any[]} */ output) => {
      const toolCallInfos = output.flatMap((message, messageIndex) => calledIn(message).map((/** @type {any} */ one, /** @type {number} */ invocationIndex) => (
        { toolName: one.toolName, toolCallId: one.toolCallId || `${messageIndex}-${invocationIndex}`, messageIndex, invocationIndex })));
      return { tools: toolCallInfos.map((one) => one.toolName), toolCallInfos };
    },
    getAssistantMessageFromRunOutput: (/** @type {any} */ output) => {
      if (typeof output === 'string') return output;
      return Array.isArray(output) ? ofRole(output, 'assistant').at(-1) : output?.text ?? (textOf(output) || undefined);
    },
    getUserMessageFromRunInput: (/** @type {any} */ input) => (typeof input === 'string' ? input : ofRole(input?.inputMessages ?? input?.messages ?? [], 'user').at(-1)),
  };
};

/** The stand-ins of the modules, by name. @type {Record<string, () => Record<string, unknown>>} */
const MODULES = {
  'axiom/ai/evals': ofAxiom, 'axiom/ai/evals/scorers': ofAxiom, 'axiom/ai/scorers': ofAxiom,
  evalite: ofEvalite, 'evalite/ai-sdk': ofEvalite, 'vitest-evals': ofVitestEvals,
  '@mastra/core/evals': ofMastra, '@mastra/core/scores': ofMastra, '@mastra/evals/scorers/utils': ofMastraUtils,
  '@mastra/evals/scorers/prebuilt': () => ({}), '@mastra/evals/scorers/code': () => ({}),
};

/** Return the code with stand-ins for its imports, on the same lines; code that imports no such module stays the same. @param {string} code */
export function withStandIns(code) {
  const used = /** @type {Set<string>} */ (new Set());
  const text = code.replace(IMPORT, (all, indent, names, _quote, specifier) => {
    const module = specifier.replace(VERSION, '');
    if (!Object.hasOwn(MODULES, module)) return all;
    used.add(module);
    const made = MODULES[module]();
    const taken = specifiers(names).map(([name, own]) => `${name}: ${own}${Object.hasOwn(made, name) ? '' : lacking(name, module)}`).join(', ');
    return `${indent}var { ${taken} } = ${nameOf(module)}()${all.replace(/[^\n]+/g, '')}`;
  });
  return used.size === 0 ? code : text + [...used].map((module) => `\n;function ${nameOf(module)}() { return (${MODULES[module]})(); }`).join('');
}

/** The name of the function that returns the scorer in a member of a list. */
export const AS_SCORER = `${PREFIX}as_scorer__`;
/** The declaration of that function, as text. A member that cannot be read becomes a scorer that fails, so that the others run. */
export const DECLARED = `\n;function ${AS_SCORER}(read) { let one; try { one = read(); } catch (error) { return async () => { throw error; }; } return typeof one?.scorer === "function" ? (${ofEvalite})().scorer(one) : one; }`;

/** Return code for a name that has no stand-in: a function that calls the package's own, if it is pinned. The name may also be that of a type. @param {string} name @param {string} module */
function lacking(name, module) {
  const real = `{ try { return require(${JSON.stringify(module)}).${name}(...all); } catch (error) { throw error; } }`; // esbuild allows a missing module only in a `try`
  return ` = ${/^create[A-Z]/.test(name) ? `(...all) => async (row) => { const one = (() => ${real})(); const { score, reason } = await one.run({ ...row, output: row.output }); return { name: one.name ?? one.id, score, metadata: { reason } }; }` : `(...all) => ${real}`}`;
}

/** @param {string} module */
function nameOf(module) {
  return `${PREFIX}${module.replace(/\W+/g, '_')}__`;
}

/** @param {string} names @returns {[string, string][]} the imported names that are not types, each with the name that the user's code gives it */
function specifiers(names) {
  return names.split(',').flatMap((part) => {
    const found = SPECIFIER.exec(part.replace(/\/\/[^\n]*|\/\*[^]*?\*\//g, '').trim());
    return found ? [/** @type {[string, string]} */ ([found[1], found[2] ?? found[1]])] : [];
  });
}
