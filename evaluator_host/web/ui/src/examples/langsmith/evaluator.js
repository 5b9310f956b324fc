function performEval(run, example) {
  if (run.outputs.answer === undefined || example.outputs.answer === undefined) throw new Error("there is no answer to compare");
  const right = run.outputs.answer === example.outputs.answer;
  return { key: "correct", score: right ? 1 : 0, comment: "compared as text" };
}
