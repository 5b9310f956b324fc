/** The host's info, loaded once at start. */
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { HostInfo } from "./api/types";

export const Host = createContext<HostInfo | null>(null);

/** Whether the host has one of these resources, such as "labels"; true for an empty list, and until the host has answered. */
export function has(host: HostInfo | null, resources: readonly string[] = []): boolean {
  return host === null || resources.length === 0 || resources.some((one) => host.resources.includes(one));
}

/** Returns `has` for the host of this page. */
export function useHas(): (...resources: string[]) => boolean {
  const host = useHost();
  return (...resources) => has(host, resources);
}

/** The host, once it has answered. */
export function useHost(): HostInfo | null {
  return useContext(Host);
}
