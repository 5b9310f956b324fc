import type { ComponentChildren } from "preact";

/** A table that scrolls within itself when it is wider than its place; `label` says what is in it. Rows are `<tr>` of a `<tbody>`. */
export function Table({ label, head, children, class: given }: { label: string; head: ComponentChildren; children: ComponentChildren; class?: string }) {
  return (
    <div class={`table-scroll ${given ?? ""}`} role="region" aria-label={label} tabIndex={0}>
      <table class="table">
        <thead>
          <tr>{head}</tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
