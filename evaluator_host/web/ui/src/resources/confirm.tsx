import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { ApiError } from "../api/http";
import { Button } from "../components/button";
import { Dialog } from "../components/dialog";
import { ErrorNote } from "../components/error-note";
import { useAction } from "../components/use-action";

interface ConfirmProps {
  /** Text of this button, and of the button that confirms. */
  label: string;
  title: string;
  children: ComponentChildren;
  onConfirm: () => Promise<void>;
  /** Deletes an object although something uses it. */
  onForce?: () => Promise<void>;
  small?: boolean;
}

/** A button that asks for confirmation in a dialog. */
export function Confirm({ small = false, ...asked }: ConfirmProps) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button kind="danger" small={small} onClick={() => setOpen(true)}>
        {asked.label}
      </Button>
      {open && <ConfirmDialog {...asked} onClose={() => setOpen(false)} />}
    </>
  );
}

/** Asks for confirmation, and shows the error if the action fails. */
export function ConfirmDialog({ label, title, children, onConfirm, onForce, onClose }: Omit<ConfirmProps, "small"> & { onClose: () => void }) {
  const { busy, error, run } = useAction();
  const force = error instanceof ApiError && error.code === "in_use" ? onForce : undefined;
  const confirm = () =>
    run(async () => {
      await (force ?? onConfirm)();
      onClose();
    });
  return (
    <Dialog
      title={title}
      onClose={onClose}
      onSubmit={() => void confirm()}
      actions={
        <>
          <Button onClick={onClose}>Keep it</Button>
          <Button kind="danger" type="submit" busy={busy}>
            {force ? "Delete anyway" : label}
          </Button>
        </>
      }
    >
      <div>{children}</div>
      {error !== null && <ErrorNote error={error} />}
    </Dialog>
  );
}
