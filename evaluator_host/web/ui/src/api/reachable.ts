/**
 * Keeps track of whether the host answers. After a request without an answer, asks the host every few seconds, and
 * tells listeners when the host answers again.
 */
const AGAIN_MS = 3000;

const listeners = new Set<(reachable: boolean) => void>();
let reachable = true;
let timer: ReturnType<typeof setTimeout> | undefined;

function tell(now: boolean): void {
  if (reachable === now) return;
  reachable = now;
  for (const listener of listeners) listener(now);
}

async function ask(): Promise<void> {
  clearTimeout(timer);
  const answers = await fetch("/healthz", { cache: "no-store" }).then(({ ok }) => ok, () => false);
  if (answers) tell(true);
  else timer = setTimeout(() => void ask(), AGAIN_MS);
}

/** Record that a request got no answer. */
export function lostHost(): void {
  if (reachable) timer = setTimeout(() => void ask(), AGAIN_MS);
  tell(false);
}

export function isReachable(): boolean {
  return reachable;
}

/** Ask at once whether the host is back. */
export function askHost(): void {
  void ask();
}

/** Call a listener when the host stops answering and when it is back; the returned function removes the listener. */
export function onReachable(listener: (reachable: boolean) => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}
