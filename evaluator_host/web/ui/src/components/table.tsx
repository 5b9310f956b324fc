import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

/**
 * A table that scrolls within itself when it is wider than the space for it; `label` says what is in it. Rows are `<tr>` of a `<tbody>`.
 *
 * In a narrow window each row is a card: its cells are below each other, each with the heading of its column. `cards={false}`
 * is for a table whose columns are compared.
 */
export function Table({ label, head, children, class: given, cards = true }: { label: string; head: ComponentChildren; children: ComponentChildren; class?: string; cards?: boolean }) {
  const table = useRef<HTMLTableElement>(null);
  useLayoutEffect(() => {
    if (table.current !== null) labelCells(table.current);
  });
  return (
    <div class={`table-scroll ${given ?? ""}`} role="region" aria-label={label} tabIndex={0}>
      <table class={cards ? "table table-cards" : "table"} ref={table}>
        <thead>
          <tr>{head}</tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

/** Name each cell after its column, as its card shows. */
function labelCells(table: HTMLTableElement): void {
  const names = [...(table.tHead?.rows[0]?.cells ?? [])].map((cell) => (cell.textContent ?? "").replace(/ [↑↓]$/, ""));
  for (const row of table.tBodies[0]?.rows ?? []) {
    let at = 0;
    for (const cell of row.cells) {
      if (cell.colSpan === 1) cell.dataset["label"] = names[at] ?? "";
      at += cell.colSpan;
    }
  }
}
