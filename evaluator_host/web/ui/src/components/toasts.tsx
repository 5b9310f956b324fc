import { useEffect, useState } from "preact/hooks";
import { Link } from "../router";
import { Button } from "./button";

/** A link, or an action that the user may take. */
type Target = { to: string; label: string } | { act: () => void; label: string };

interface Toast {
  id: number;
  text: string;
  target?: Target | undefined;
}

const LASTS_MS = 4000;
const WITH_LINK_MS = 12_000;
let next = 0;
let show: ((toast: Toast) => void) | null = null;

/** Show for a moment, at the foot of the page, what was done; screen readers read it out. */
export function toast(text: string, target?: Target): void {
  show?.({ id: next++, text, target });
}

export function Toasts() {
  const [toasts, setToasts] = useState<readonly Toast[]>([]);
  const remove = (id: number) => setToasts((before) => before.filter((one) => one.id !== id));
  useEffect(() => {
    show = (added) => {
      setToasts((before) => [...before.slice(-2), added]);
      setTimeout(() => remove(added.id), added.target === undefined ? LASTS_MS : WITH_LINK_MS);
    };
    return () => void (show = null);
  }, []);
  return (
    <div class="toasts stack" role="status">
      {toasts.map((one) => (
        <p key={one.id} class="toast">
          {one.text}
          {one.target && (
            <span onClick={() => remove(one.id)}>
              {" "}
              {"to" in one.target ? (
                <Link to={one.target.to}>{one.target.label}</Link>
              ) : (
                <Button kind="quiet" small onClick={one.target.act}>
                  {one.target.label}
                </Button>
              )}
            </span>
          )}
        </p>
      ))}
    </div>
  );
}
