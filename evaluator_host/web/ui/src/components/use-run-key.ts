import { useEffect, useRef } from "preact/hooks";

/** Runs on Ctrl+Enter or Cmd+Enter, wherever the focus is except in a dialog, unless an editor has handled the key. */
export function useRunKey(run: () => void): void {
  const latest = useRef(run);
  latest.current = run;
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.key !== "Enter" || !(event.metaKey || event.ctrlKey) || event.defaultPrevented || event.repeat) return;
      if (document.querySelector("dialog[open]") !== null) return;
      event.preventDefault();
      latest.current();
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, []);
}
