import { useCallback, useEffect, useState } from "preact/hooks";
import { isAbort, isUnreachable } from "../api/http";
import { onReachable } from "../api/reachable";

export interface Loaded<T> {
  value: T | null;
  error: unknown;
  loading: boolean;
  /** Load again; the old value stays until the new one has arrived. */
  reload: () => void;
}

/** Returns the result of `load`, loaded again whenever `dependencies` change, and when a lost host is back; outdated results are dropped. */
export function useLoaded<T>(load: (signal: AbortSignal) => Promise<T>, dependencies: readonly unknown[]): Loaded<T> {
  const [state, setState] = useState<{ value: T | null; error: unknown; loading: boolean }>({ value: null, error: null, loading: true });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    setState((before) => ({ ...before, error: null, loading: true }));
    load(abort.signal).then(
      (value) => !abort.signal.aborted && setState({ value, error: null, loading: false }),
      (error: unknown) => !abort.signal.aborted && !isAbort(error) && setState((before) => ({ ...before, error, loading: false })),
    );
    return () => abort.abort();
  }, [...dependencies, turn]);
  const lost = isUnreachable(state.error);
  useEffect(() => (lost ? onReachable((reachable) => reachable && setTurn((before) => before + 1)) : undefined), [lost]);
  return { ...state, reload: useCallback(() => setTurn((before) => before + 1), []) };
}
