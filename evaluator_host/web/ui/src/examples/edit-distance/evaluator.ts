type Result = { score: number; edits: number };

export function evaluate(inputs: Record<string, unknown>, outputs: unknown, trace: unknown): Result {
  if (inputs.correct_answer === undefined || inputs.correct_answer === null) {
    throw new Error("the row has no correct_answer to compare with");
  }
  // The texts are split into code points, so that an emoji is one letter, not two.
  const [found, expected] = [[...String(outputs ?? "")], [...String(inputs.correct_answer)]];
  const edits = distance(found, expected);
  const longest = Math.max(found.length, expected.length);
  return { score: longest ? 1 - edits / longest : 1, edits };
}

/** Count insertions, deletions and replacements, keeping one row of the table at a time. */
function distance(one: string[], other: string[]): number {
  let above = Array.from({ length: other.length + 1 }, (_, column) => column);
  one.forEach((letter, row) => {
    const here = [row + 1];
    other.forEach((wanted, column) => {
      here.push(Math.min(above[column + 1]! + 1, here[column]! + 1, above[column]! + (letter === wanted ? 0 : 1)));
    });
    above = here;
  });
  return above[other.length]!;
}
