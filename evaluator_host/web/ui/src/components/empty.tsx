import type { ComponentChildren } from "preact";

/** The placeholder of an empty list: what belongs here, and how to add it. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children && <div class="empty-text">{children}</div>}
    </div>
  );
}
