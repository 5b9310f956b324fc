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

/** Return the client package that a specifier names, or null for any other specifier. @param {string} specifier */
function clientOf(specifier) {
  return CLIENTS.find((one) => specifier === one || specifier.startsWith(`${one}/`)) ?? null;
}

module.exports = { clientOf };
