import type { ComponentChildren } from "preact";

/** The placeholder of an empty list: says what the list is for, and how to add to it. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty stack-tight">
      <p class="strong">{title}</p>
      {children && <div class="empty-text stack">{children}</div>}
    </div>
  );
}
