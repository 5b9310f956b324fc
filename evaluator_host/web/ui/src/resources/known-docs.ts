/** The documentation but for pages on platforms that this host does not know. */
import { useMemo } from "preact/hooks";
import { DOCS, type DocPage } from "docs:all";
import { useHost } from "../host";

const PLATFORMS = "dialects/";
const ADDING = `${PLATFORMS}adding`;

export function useDocs(): readonly DocPage[] {
  const host = useHost();
  return useMemo(() => DOCS.filter(({ id }) => host === null || !id.startsWith(PLATFORMS) || id === ADDING || host.contracts.includes(id.slice(PLATFORMS.length).replaceAll("_", "-"))), [host]);
}
