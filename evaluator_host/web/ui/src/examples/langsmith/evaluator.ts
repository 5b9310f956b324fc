function performEval(run: any, example: any) {
  const right = run.outputs.answer === example.outputs.answer;
  return { key: "correct", score: right ? 1 : 0, comment: "compared as text" };
}
