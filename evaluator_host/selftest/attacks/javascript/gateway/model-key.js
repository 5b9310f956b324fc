// include: ask.js
async function attack(inputs) {
  const { status, text } = await ask("key");
  if (status !== 200) return "the model does not answer: " + text;
  const named = Object.entries(process.env).filter(([name, value]) => name.endsWith("KEY") && value !== "evaluator-host");
  return named.length > 0 || (text.includes("[masked]") ? "" : text);
}
