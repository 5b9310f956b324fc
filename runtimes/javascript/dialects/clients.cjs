// @ts-check
/**
 * Packages of clients of models and platforms. Evaluators may import such a package and make its
 * clients even if it is not pinned; the use of a client is then an error that names the pin.
 */
'use strict';

const CLIENTS = [
  '@ai-sdk/anthropic', '@ai-sdk/google', '@ai-sdk/openai', '@anthropic-ai/sdk', '@google/genai', '@google/generative-ai',
  '@langchain/anthropic', '@langchain/core', '@langchain/openai', '@langfuse/client', '@mistralai/mistralai', 'ai',
  'braintrust', 'cohere-ai', 'dotenv', 'groq-sdk', 'langchain', 'langfuse', 'langsmith', 'ollama', 'openai',
];

/** Return the package of such a client that a specifier names; null for any other. @param {string} specifier */
function clientOf(specifier) {
  return CLIENTS.find((one) => specifier === one || specifier.startsWith(`${one}/`)) ?? null;
}

module.exports = { clientOf };
