import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  /** Buttons at the foot of the dialog. */
  actions?: ComponentChildren;
  wide?: boolean;
  /** Called on Enter in a field, and on the submit button of `actions`. */
  onSubmit?: (() => void) | undefined;
}

/** A modal dialog, shown while it is rendered: the browser keeps the focus in it, and Escape closes it. */
export function Dialog({ title, onClose, children, actions, wide = false, onSubmit }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const shown = dialog.current;
    if (shown === null) return;
    shown.showModal();
    // the first field gets the focus, not the button that closes the dialog
    shown.querySelector<HTMLElement>(".dialog-body :is(input, select, textarea):enabled")?.focus();
    return () => shown.close();
  }, []);
  const submit = (event: Event) => {
    event.preventDefault();
    onSubmit?.();
  };
  const onCancel = (event: Event) => {
    event.preventDefault();
    onClose();
  };
  const onBackdrop = (event: MouseEvent) => {
    // not on the second click of a double click on a button: the dialog may have become smaller in between
    if (event.target === dialog.current && event.detail < 2) onClose();
  };
  return (
    <dialog ref={dialog} class={wide ? "dialog dialog-wide" : "dialog"} aria-labelledby={id} onCancel={onCancel} onMouseDown={onBackdrop}>
      <form class="dialog-form stack" onSubmit={submit}>
        <header class="dialog-header">
          <h2 id={id}>{title}</h2>
          <button class="icon-button" type="button" aria-label="Close" onClick={onClose}>
            <svg viewBox="0 0 24 24" class="icon" aria-hidden="true">
              <path d="M6 6l12 12M18 6 6 18" />
            </svg>
          </button>
        </header>
        <div class="dialog-body stack">{children}</div>
        {actions && <footer class="dialog-actions line">{actions}</footer>}
      </form>
    </dialog>
  );
}
