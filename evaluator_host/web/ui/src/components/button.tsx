import type { JSX } from "preact";

type ButtonProps = Omit<JSX.IntrinsicElements["button"], "size"> & {
  /** What it is for: the one thing to do here, something destructive, or anything else. */
  kind?: "primary" | "plain" | "quiet" | "danger";
  small?: boolean;
  busy?: boolean;
};

/** A button. While `busy` it cannot be pressed and says so. */
export function Button({ kind = "plain", small = false, busy = false, disabled, class: given, children, ...rest }: ButtonProps) {
  const classes = ["button", `button-${kind}`, small ? "button-small" : "", given ?? ""].filter(Boolean).join(" ");
  return (
    <button type="button" {...rest} class={classes} disabled={disabled || busy} aria-busy={busy || undefined}>
      {busy && <span class="spinner-ring" aria-hidden="true" />}
      {children}
    </button>
  );
}
