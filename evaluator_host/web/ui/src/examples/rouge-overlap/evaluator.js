export function evaluate(inputs, outputs, trace) {
  const expected = words(inputs.correct_answer);
  if (expected.length === 0) {
    throw new Error("the row has no correct_answer to compare with");
  }
  const found = words(outputs);
  const common = longestCommon(found, expected);
  const precision = found.length ? common / found.length : 0;
  const recall = common / expected.length;
  const f1 = common ? (2 * precision * recall) / (precision + recall) : 0;
  return { score: f1, precision, recall, common_words: common };
}

function words(value) {
  return String(value ?? "").toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];
}

/** Return the length of the longest common subsequence, keeping one row of the table at a time. */
function longestCommon(one, other) {
  let above = new Array(other.length + 1).fill(0);
  for (const word of one) {
    const here = [0];
    other.forEach((wanted, column) => {
      here.push(word === wanted ? above[column] + 1 : Math.max(above[column + 1], here[column]));
    });
    above = here;
  }
  return above[other.length];
}
