export function evaluate(inputs, outputs, trace) {
  const wanted = inputs.expected_fields;
  if (typeof wanted !== "object" || wanted === null) throw new Error("the row has no expected_fields to compare with");
  let found = outputs;
  if (typeof outputs === "string") {
    try {
      found = JSON.parse(outputs);
    } catch {
      return { score: 0, reason: "the output is not JSON" };
    }
  }
  const fields = Object.entries(wanted);
  const wrong = fields.filter(([name, value]) => !same(found?.[name], value)).map(([name]) => name);
  return { score: fields.length === 0 ? 1 : 1 - wrong.length / fields.length, reason: wrong.length === 0 ? "every field is right" : `wrong: ${wrong.join(", ")}` };
}

/** Whether two JSON values are equal; the order of keys does not count. */
function same(found, wanted) {
  if (found === null || wanted === null || typeof found !== "object" || typeof wanted !== "object") return found === wanted;
  if (Array.isArray(found) !== Array.isArray(wanted) || Object.keys(found).length !== Object.keys(wanted).length) return false;
  return Object.entries(found).every(([name, value]) => Object.hasOwn(wanted, name) && same(value, wanted[name]));
}
