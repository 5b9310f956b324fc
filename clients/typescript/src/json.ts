/** How integers beyond `Number.MAX_SAFE_INTEGER` in responses are read: as numbers, which rounds them, as `bigint` or as strings. */
export type Integers = "number" | "bigint" | "text";

const LONG = /\d{16}/; // digits of the smallest integer that a double may round
const INTEGER = /^-?\d{16,}$/;
// has no repeated group, because with one, a long string would exhaust the stack
const TOKENS = /\\.|"|-?\d[\d.eE+-]*/g;

/** Decode JSON; `onRounded` is called with the first integer that a number cannot hold exactly. */
export function decoded(text: string, integers: Integers, onRounded: (digits: string) => void): unknown {
  if (!LONG.test(text)) return JSON.parse(text);
  if (integers === "bigint") {
    const mark = markOf(text);
    return JSON.parse(withTexts(text, mark), (_key, value) => (typeof value === "string" && value.startsWith(mark) ? BigInt(value.slice(mark.length)) : value));
  }
  let rounded: string | undefined;
  const exact = withTexts(text, "", (digits) => (rounded ??= BigInt(Number(digits)) === BigInt(digits) ? undefined : digits));
  if (integers === "text") return JSON.parse(exact);
  if (rounded !== undefined) onRounded(rounded);
  return JSON.parse(text);
}

/** Return JSON with its long integers as strings that begin with a mark. */
function withTexts(json: string, mark: string, onLong: (digits: string) => void = () => undefined): string {
  let inText = false;
  return json.replace(TOKENS, (token) => {
    if (token === '"') inText = !inText;
    if (inText || !isLong(token)) return token;
    onLong(token);
    return `"${mark}${token}"`;
  });
}

/**
 * Return a value as JSON; a `bigint` is written as an integer.
 * @throws TypeError the value has NaN or an infinity, which would become null.
 */
export function encoded(value: unknown): string {
  let hasBigint = false;
  const text = JSON.stringify(value, (key, one) => {
    if (typeof one === "number" && !Number.isFinite(one)) throw new TypeError(`the number at ${JSON.stringify(key)} is ${one}, which JSON does not have; send null or text in its place`);
    if (typeof one !== "bigint") return one;
    hasBigint = true;
    return null;
  });
  if (!hasBigint) return text;
  const mark = markOf(text);
  const marked = JSON.stringify(value, (_key, one) => (typeof one === "bigint" ? mark + one : one));
  return marked.replace(new RegExp(`"${mark}(-?\\d+)"`, "g"), "$1");
}

function isLong(token: string): boolean {
  return INTEGER.test(token) && !Number.isSafeInteger(Number(token));
}

/** Return a prefix with which no string in the JSON begins. */
function markOf(json: string): string {
  let mark = "#";
  while (json.includes(`"${mark}`)) mark += "#";
  return mark;
}
