// @ts-check
/**
 * Lists client packages for models and platforms. Evaluators may import such a package and make its
 * clients even if it is not pinned; using a client then raises an error that names the pin.
 */
'use strict';

const CLIENTS = [
  '@ai-sdk/anthropic', '@ai-sdk/google', '@ai-sdk/openai', '@anthropic-ai/sdk', '@google/genai', '@google/generative-ai',
  '@langchain/anthropic', '@langchain/core', '@langchain/openai', '@langfuse/client', '@mistralai/mistralai', 'ai',
  'braintrust', 'cohere-ai', 'dotenv', 'groq-sdk', 'langchain', 'langfuse', 'langsmith', 'ollama', 'openai',
];

/** The environment variables from which clients take their keys. Without a key, such a client cannot be made. @type {Record<string, string>} */
const KEYS = { '@anthropic-ai/sdk': 'ANTHROPIC_API_KEY', '@google/genai': 'GEMINI_API_KEY', 'groq-sdk': 'GROQ_API_KEY', openai: 'OPENAI_API_KEY', 'together-ai': 'TOGETHER_API_KEY' };
const PLACEHOLDER = 'no-key-in-a-sandbox';

/** Matches code that passes a key to a client, perhaps with nothing in place of a key that is not set. */
const PASSED = /\bapiKey:\s*process\.env(?:\.\w+|\["\w+"\])(?:\s*(?:\?\?|\|\|)\s*(?:""|''|``|null|undefined|void 0))?(?=\s*[,}])/g;

/** Return placeholders for the keys of the clients in a bundled program, so that code can make these clients while it loads. There is none for a key that the author's `own` code reads, other than to pass it to a client, because that code may do without it. @param {string} program @param {string} own @returns {Record<string, string>} */
function keysFor(program, own) {
  const bundled = Object.keys(KEYS).filter((one) => program.includes(`node_modules/${one}/`)); // esbuild writes the file of each module in a comment
  const read = own.replace(PASSED, '');
  return Object.fromEntries(bundled.filter((one) => !read.includes(KEYS[one])).map((one) => [KEYS[one], PLACEHOLDER]));
}

/** Return the client package that a specifier names, or null for any other specifier. @param {string} specifier */
function clientOf(specifier) {
  return CLIENTS.find((one) => specifier === one || specifier.startsWith(`${one}/`)) ?? null;
}

module.exports = { clientOf, keysFor };
