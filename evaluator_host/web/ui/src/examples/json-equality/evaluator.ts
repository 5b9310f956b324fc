type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
type Result = { score: number; passed: boolean; reason: string };

export function evaluate(inputs: Record<string, Json>, outputs: Json, trace: unknown): Result {
  if (!("correct_answer" in inputs)) {
    throw new Error("the row has no correct_answer to compare with");
  }
  let found: Json, expected: Json;
  try {
    [found, expected] = [parsed(outputs), parsed(inputs.correct_answer ?? null)];
  } catch (error) {
    return { score: 0, passed: false, reason: `not JSON: ${(error as Error).message}` };
  }
  const place = firstDifference(found, expected, "$");
  if (place === null) {
    return { score: 1, passed: true, reason: "equal" };
  }
  return { score: 0, passed: false, reason: `differs at ${place}` };
}

function parsed(value: Json): Json {
  return typeof value === "string" ? JSON.parse(value) : value;
}

/** Return the path of the first difference, null when there is none. */
function firstDifference(found: Json, expected: Json, path: string): string | null {
  if (Array.isArray(found) && Array.isArray(expected)) {
    for (let index = 0; index < Math.max(found.length, expected.length); index++) {
      const [one, other] = [found[index], expected[index]];
      const below = `${path}[${index}]`;
      const place = one === undefined || other === undefined ? below : firstDifference(one, other, below);
      if (place !== null) {
        return place;
      }
    }
    return null;
  }
  if (isObject(found) && isObject(expected)) {
    for (const key of [...new Set([...Object.keys(found), ...Object.keys(expected)])].sort()) {
      const [one, other] = [found[key], expected[key]];
      const below = `${path}.${key}`;
      const place = one === undefined || other === undefined ? below : firstDifference(one, other, below);
      if (place !== null) {
        return place;
      }
    }
    return null;
  }
  return found === expected ? null : path;
}

function isObject(value: Json): value is { [key: string]: Json } {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
