import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Button } from "../components/button";
import { Dialog } from "../components/dialog";
import { ErrorNote } from "../components/error-note";

interface ConfirmProps {
  /** On the button, and on the one that confirms. */
  label: string;
  title: string;
  children: ComponentChildren;
  onConfirm: () => Promise<void>;
  small?: boolean;
}

/** A button that asks for confirmation in a dialog. The dialog also shows the error if the action fails. */
export function Confirm({ label, title, children, onConfirm, small = false }: ConfirmProps) {
  const [open, setOpen] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const confirm = async () => {
    setBusy(true);
    setError(null);
    try {
      await onConfirm();
      setOpen(false);
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  };
  return (
    <>
      <Button kind="danger" small={small} onClick={() => setOpen(true)}>
        {label}
      </Button>
      {open && (
        <Dialog
          title={title}
          onClose={() => setOpen(false)}
          onSubmit={() => void confirm()}
          actions={
            <>
              <Button onClick={() => setOpen(false)}>Keep it</Button>
              <Button kind="danger" type="submit" busy={busy}>
                {label}
              </Button>
            </>
          }
        >
          <div>{children}</div>
          {error !== null && <ErrorNote error={error} />}
        </Dialog>
      )}
    </>
  );
}
