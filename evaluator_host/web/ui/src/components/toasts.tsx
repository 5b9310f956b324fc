import { useEffect, useState } from "preact/hooks";

interface Toast {
  id: number;
  text: string;
}

const LASTS_MS = 4000;
let next = 0;
let show: ((toast: Toast) => void) | null = null;

/** Say briefly that something was done: at the foot of the page, and to a screen reader. */
export function toast(text: string): void {
  show?.({ id: next++, text });
}

export function Toasts() {
  const [toasts, setToasts] = useState<readonly Toast[]>([]);
  useEffect(() => {
    show = (added) => {
      setToasts((before) => [...before.slice(-2), added]);
      setTimeout(() => setToasts((before) => before.filter((one) => one.id !== added.id)), LASTS_MS);
    };
    return () => void (show = null);
  }, []);
  return (
    <div class="toasts" role="status">
      {toasts.map((one) => (
        <p key={one.id} class="toast">
          {one.text}
        </p>
      ))}
    </div>
  );
}
