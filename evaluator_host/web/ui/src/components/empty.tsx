import type { ComponentChildren } from "preact";

/** The placeholder of an empty list: what belongs here, and how to add it. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty stack-tight">
      <p class="strong">{title}</p>
      {children && <div class="empty-text stack">{children}</div>}
    </div>
  );
}
