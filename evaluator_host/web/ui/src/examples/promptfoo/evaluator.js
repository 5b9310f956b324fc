module.exports = (output, context) => {
  const pass = output === context.vars.expected;
  return { pass, score: pass ? 1 : 0, reason: "compared as text" };
};
