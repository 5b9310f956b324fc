/** What the host is: asked once, when the page begins. */
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { HostInfo } from "./api/types";

export const Host = createContext<HostInfo | null>(null);

/** The host, once it has answered. */
export function useHost(): HostInfo | null {
  return useContext(Host);
}
