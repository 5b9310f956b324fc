/** How the rows of two versions of a data set differ. */
import type { Columns } from "../api/types";

export interface RowChange {
  kind: "added" | "removed" | "changed";
  /** Its number in the later version; of a removed row, in the earlier one. */
  index: number;
  before: Columns | null;
  after: Columns | null;
}

const MOST_CELLS = 4_000_000; // of the table below; 2,000 rows between the first and the last change

/** The changes in the order of the later version. A row that was removed where one was added counts as changed. */
export function rowChanges(before: readonly Columns[], after: readonly Columns[]): RowChange[] {
  const [old, now] = [before.map((row) => JSON.stringify(row)), after.map((row) => JSON.stringify(row))];
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start += 1;
  let [oldEnd, nowEnd] = [old.length, now.length];
  while (oldEnd > start && nowEnd > start && old[oldEnd - 1] === now[nowEnd - 1]) [oldEnd, nowEnd] = [oldEnd - 1, nowEnd - 1];
  const changes: RowChange[] = [];
  let [gone, come] = [new Array<number>(), new Array<number>()];
  const flush = () => {
    const pairs = Math.min(gone.length, come.length);
    for (let at = 0; at < Math.max(gone.length, come.length); at += 1) {
      if (at < pairs) changes.push({ kind: "changed", index: come[at]!, before: before[gone[at]!]!, after: after[come[at]!]! });
      else if (at < gone.length) changes.push({ kind: "removed", index: gone[at]!, before: before[gone[at]!]!, after: null });
      else changes.push({ kind: "added", index: come[at]!, before: null, after: after[come[at]!]! });
    }
    [gone, come] = [[], []];
  };
  for (const [one, other] of pairing(old.slice(start, oldEnd), now.slice(start, nowEnd))) {
    if (one !== null && other !== null) flush();
    else if (one !== null) gone.push(start + one);
    else if (other !== null) come.push(start + other);
  }
  flush();
  return changes;
}

/** The longest common subsequence as pairs; what is in one alone stands with null. Where that would take too long: nothing is common. */
function* pairing(old: readonly string[], now: readonly string[]): Generator<[number | null, number | null]> {
  const width = now.length + 1;
  const small = old.length * width <= MOST_CELLS;
  const length = new Uint16Array(small ? (old.length + 1) * width : 0);
  for (let i = old.length - 1; small && i >= 0; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) {
      length[i * width + j] = old[i] === now[j] ? length[(i + 1) * width + j + 1]! + 1 : Math.max(length[(i + 1) * width + j]!, length[i * width + j + 1]!);
    }
  }
  let [i, j] = [0, 0];
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) yield [i++, j++];
    else if (j >= now.length || (i < old.length && (!small || length[(i + 1) * width + j]! >= length[i * width + j + 1]!))) yield [i++, null];
    else yield [null, j++];
  }
}
