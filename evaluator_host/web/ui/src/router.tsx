/** The router: shows the page of a path without reloading the document. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

export interface Place {
  path: string;
  query: URLSearchParams;
}

const listeners = new Set<() => void>();

function here(): Place {
  return { path: location.pathname, query: new URLSearchParams(location.search) };
}

function tell(): void {
  for (const listener of listeners) listener();
}

addEventListener("popstate", tell);

/** Go to a page of the workbench; `replace` adds no entry to the history. */
export function navigate(to: string, { replace = false, scroll = true } = {}): void {
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  if (scroll && !replace) scrollTo(0, 0);
  tell();
}

/** Change parameters in the address of the current page; null removes a parameter. */
export function setQuery(changes: Record<string, string | null>): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  navigate(location.pathname + (text === "" ? "" : `?${text}`), { replace: true });
}

export function usePlace(): Place {
  const [place, setPlace] = useState(here);
  useEffect(() => {
    const listener = () => setPlace(here());
    listeners.add(listener);
    listener();
    return () => void listeners.delete(listener);
  }, []);
  return place;
}

interface LinkProps {
  to: string;
  children: ComponentChildren;
  class?: string;
  title?: string | undefined;
  "aria-label"?: string | undefined;
  "aria-current"?: "page" | "true" | undefined;
  role?: "menuitem";
  tabIndex?: number;
}

/** A link within the workbench. */
export function Link({ to, children, ...rest }: LinkProps) {
  const follow = (event: MouseEvent) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    navigate(to);
  };
  return (
    <a {...rest} href={to} onClick={follow}>
      {children}
    </a>
  );
}
