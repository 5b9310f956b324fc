import { useLayoutEffect, useState } from "preact/hooks";
import { onKeyNeeded } from "../api/http";
import { Button } from "./button";
import { Dialog } from "./dialog";
import { Field } from "./field";

interface Asked {
  refused: boolean;
  answer: (key: string | null) => void;
}

/** Asks the user for an API key when the host requires one, only once even if several requests wait for the key. */
export function KeyDialog() {
  const [asked, setAsked] = useState<Asked | null>(null);
  const [key, setKey] = useState("");
  // This is a layout effect, because the first effect of the frame already sends a request.
  useLayoutEffect(() => {
    let waiting: Promise<string | null> | null = null;
    onKeyNeeded((refused) => {
      waiting ??= new Promise<string | null>((resolve) => {
        const answer = (given: string | null) => {
          waiting = null;
          setAsked(null);
          resolve(given);
        };
        setKey("");
        setAsked({ refused, answer });
      });
      return waiting;
    });
  }, []);
  if (asked === null) return null;
  const given = key.trim();
  return (
    <Dialog
      title="This host needs a key"
      onClose={() => asked.answer(null)}
      onSubmit={() => given !== "" && asked.answer(given)}
      actions={
        <Button kind="primary" type="submit" disabled={given === ""}>
          Use this key
        </Button>
      }
    >
      <p class="muted">
        This tab keeps the key until you close it. The operator creates keys with <code>evaluator-host keys create</code>.
      </p>
      <Field
        label="API key"
        type="password"
        autocomplete="off"
        spellcheck={false}
        value={key}
        onValue={setKey}
        error={asked.refused ? "This key is not valid, or it was revoked." : null}
      />
    </Dialog>
  );
}
