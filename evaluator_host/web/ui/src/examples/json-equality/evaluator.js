export function evaluate(inputs, outputs, trace) {
  if (!("correct_answer" in inputs)) {
    throw new Error("the row has no correct_answer to compare with");
  }
  let found, expected;
  try {
    [found, expected] = [parsed(outputs), parsed(inputs.correct_answer)];
  } catch (error) {
    return { score: 0, passed: false, reason: `not JSON: ${error.message}` };
  }
  const place = firstDifference(found, expected, "$");
  if (place === null) {
    return { score: 1, passed: true, reason: "equal" };
  }
  return { score: 0, passed: false, reason: `differs at ${place}` };
}

function parsed(value) {
  return typeof value === "string" ? JSON.parse(value) : value;
}

/** Return the path of the first difference, null when there is none. */
function firstDifference(found, expected, path) {
  const plain = (value) => value === null || typeof value !== "object";
  if (plain(found) || plain(expected) || Array.isArray(found) !== Array.isArray(expected)) {
    return found === expected ? null : path;
  }
  const keys = [...new Set([...Object.keys(found), ...Object.keys(expected)])];
  for (const key of Array.isArray(found) ? keys : keys.sort()) {
    const below = Array.isArray(found) ? `${path}[${key}]` : `${path}.${key}`;
    if (!Object.hasOwn(found, key) || !Object.hasOwn(expected, key)) {
      return below;
    }
    const place = firstDifference(found[key], expected[key], below);
    if (place !== null) {
      return place;
    }
  }
  return null;
}
