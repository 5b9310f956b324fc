export default function (output: string, context: { vars: Record<string, string> }) {
  const pass = output === context.vars.expected;
  return { pass, score: pass ? 1 : 0, reason: "compared as text" };
}
