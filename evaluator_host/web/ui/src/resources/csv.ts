/** The values of a plot as CSV, for a spreadsheet. */

const FORMULA = /^(?=[\t\r]|[ \xa0]*[=+\-@])|(?<=[;\t])(?=[ \xa0]*[=+\-@])|(?<=[\r\n])(?=[ \xa0]*[=@])/g;

/** A header and rows as CSV. Text that a spreadsheet would take for a formula gets an apostrophe, as in the host's own files. */
export function csv(header: readonly string[], rows: readonly (readonly (string | number | null)[])[]): Blob {
  const lines = [header, ...rows].map((cells) => cells.map(cell).join(","));
  return new Blob([`${lines.join("\r\n")}\r\n`], { type: "text/csv" });
}

function cell(value: string | number | null): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  const safe = value.replaceAll(FORMULA, "'");
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
