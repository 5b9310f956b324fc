import type { JSX } from "preact";

type ButtonProps = Omit<JSX.IntrinsicElements["button"], "size"> & {
  /** Purpose: the main action of the page, a destructive action, or any other. */
  kind?: "primary" | "plain" | "quiet" | "danger";
  small?: boolean;
  busy?: boolean;
};

/** A button; while `busy` it is disabled, and screen readers say so. */
export function Button({ kind = "plain", small = false, busy = false, disabled, class: given, children, ...rest }: ButtonProps) {
  const classes = ["button", `button-${kind}`, small ? "button-small" : "", given ?? ""].filter(Boolean).join(" ");
  return (
    <button type="button" {...rest} class={classes} disabled={disabled || busy} aria-busy={busy || undefined}>
      {busy && <span class="spinner-ring" aria-hidden="true" />}
      {children}
    </button>
  );
}
