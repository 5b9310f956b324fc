import { useRef, useState } from "preact/hooks";

export interface Action {
  /** Whether the action runs. */
  busy: boolean;
  /** Why the last run failed; null if it did not. */
  error: unknown;
  setError: (error: unknown) => void;
  /** Run an action, unless the last run has not ended. */
  run: (action: () => Promise<void>) => Promise<void>;
}

/** The state of an action that a button starts: at most one run at a time. */
export function useAction(): Action {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const running = useRef(false);
  const run = async (action: () => Promise<void>) => {
    if (running.current) return;
    running.current = true;
    setBusy(true);
    setError(null);
    try {
      await action();
    } catch (fault) {
      setError(fault);
    }
    running.current = false;
    setBusy(false);
  };
  return { busy, error, setError, run };
}
