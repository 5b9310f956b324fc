/** The host's info, loaded once at start. */
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { HostInfo } from "./api/types";

export const Host = createContext<HostInfo | null>(null);

/** The host, once it has answered. */
export function useHost(): HostInfo | null {
  return useContext(Host);
}
