/** Reads JSON that users type, with the line and column of an error, and writes JSON for display. */

export type Read = { ok: true; value: unknown; given: boolean } | { ok: false; message: string; line: number | null; column: number | null };

interface ExactJson {
  parse(text: string, revive: (key: string, value: unknown, context: { source?: string }) => unknown): unknown;
  rawJSON?(text: string): unknown;
  isRawJSON?(value: unknown): boolean;
}

const exact = JSON as unknown as ExactJson;

/**
 * Parse JSON. A whole number beyond 2^53 becomes an object that `JSON.stringify` writes with all its digits, if the
 * browser has such objects; as a number it would lose digits. Fields called `computed` stay numbers.
 */
export function parseExactly(text: string, computed?: string): unknown {
  if (exact.rawJSON === undefined || !/\d{16}/.test(text)) return JSON.parse(text);
  return exact.parse(text, (name, value, { source = "" }) => (typeof value === "number" && name !== computed && !Number.isSafeInteger(value) && /^-?\d+$/.test(source) ? exact.rawJSON!(source) : value));
}

/** Whether a parsed value is an object with fields, not a list or a long number. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === "object" && !Array.isArray(value) && !exact.isRawJSON?.(value);
}

/** The value of an object's own field; a column may be called `constructor`, which every object inherits. */
export function own<T>(row: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(row, name) ? row[name] : undefined;
}

/** A parsed number as a number, even if it loses digits; null for other values. */
export function numberIn(value: unknown): number | null {
  return typeof value === "number" ? value : exact.isRawJSON?.(value) ? Number(JSON.stringify(value)) : null;
}

/** Read JSON; an empty string is valid, and `given` is then false. */
export function readJson(text: string): Read {
  if (text.trim() === "") return { ok: true, value: undefined, given: false };
  try {
    return { ok: true, value: parseExactly(text), given: true };
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error);
    const { line, column } = placeOf(words, text);
    const where = line === null ? "" : ` (line ${line}, column ${column})`;
    return { ok: false, message: `This is not valid JSON${where}. Text needs double quotes.`, line, column };
  }
}

/** Find the place in a JavaScript engine's message: `at position 12`, `line 2 column 3`, or the end of the text. */
function placeOf(words: string, text: string): { line: number | null; column: number | null } {
  const named = /line (\d+) column (\d+)/.exec(words);
  if (named) return { line: Number(named[1]), column: Number(named[2]) };
  const at = /at position (\d+)/.exec(words);
  const position = at ? Number(at[1]) : /end of/i.test(words) ? text.trimEnd().length : null;
  if (position === null) return { line: null, column: null };
  const before = text.slice(0, position);
  return { line: before.split("\n").length, column: position - before.lastIndexOf("\n") };
}

/** A value as a string of at most `most` characters, and the number of characters that were left out. */
export function shownJson(value: unknown, most = 20_000): { text: string; left: number } {
  const text = JSON.stringify(value, null, 2) ?? "";
  return text.length <= most ? { text, left: 0 } : { text: text.slice(0, most), left: text.length - most };
}
