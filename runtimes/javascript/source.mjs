// @ts-check
/**
 * Makes pasted text a program: takes off what pages add to code when it is copied, without moving a line.
 *
 * Every line stays where it is, so that line numbers are the user's own; columns that moved are remembered.
 */

/**
 * @typedef {{text: string, shifts: number[] | null}} Source `shifts[i]` characters were taken from the start of line i
 */

const FENCE_OPEN = /^\s*(`{3,}|~{3,})[\w+#.-]*\s*$/;
const GUTTER = /^[ \t]*(\d+)(?=\D|$)/;

/**
 * @param {string} code as sent
 * @returns {Source}
 */
export function prepareSource(code) {
  const lines = code.replace(/^\uFEFF/, '').split(/\r\n|\r|\n/);
  unfence(lines);
  const shifts = stripGutter(lines);
  if (lines[0]?.startsWith('#!')) lines[0] = '';
  return { text: lines.join('\n'), shifts };
}

/** A Markdown fence around everything goes, and its lines stay as empty ones. @param {string[]} lines */
function unfence(lines) {
  const first = lines.findIndex((line) => line.trim() !== '');
  const fence = first < 0 ? null : FENCE_OPEN.exec(lines[first]);
  if (!fence) return;
  const last = lines.findLastIndex((line) => line.trim() !== '');
  lines[first] = '';
  if (last > first && lines[last].trim() === fence[1]) lines[last] = '';
}

/**
 * Take off a line-number gutter: 1, 2, 3 … at the start of every line that is not blank.
 *
 * @param {string[]} lines
 * @returns {number[] | null}
 */
function stripGutter(lines) {
  const matches = lines.map((line) => GUTTER.exec(line));
  let expected = 1;
  for (const [index, line] of lines.entries()) {
    if (line.trim() === '') continue;
    if (Number(matches[index]?.[1]) !== expected) return null;
    expected++;
  }
  if (expected < 3) return null; // one numbered line may be an expression
  return lines.map((line, index) => {
    const width = matches[index]?.[0].length ?? 0;
    lines[index] = line.slice(width);
    return width;
  });
}
