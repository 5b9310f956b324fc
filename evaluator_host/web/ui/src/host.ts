/** What the host is: asked once, when the page begins. */
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Limits } from "./types";

export interface HostInfo {
  version: string;
  backend: string;
  languages: string[];
  contracts: string[];
  default_limits: Limits;
  limit_ceilings: Limits;
  runtimes: Record<string, string>;
  /** Minor versions of Python that evaluators may ask for. */
  pythons: string[];
}

export const Host = createContext<HostInfo | null>(null);

/** The host, once it has answered. */
export function useHost(): HostInfo | null {
  return useContext(Host);
}
