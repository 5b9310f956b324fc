/** The documentation without pages on platforms that this host does not know. */
import { useMemo } from "preact/hooks";
import { DOCS, type DocPage } from "docs:all";
import type { HostInfo } from "../api/types";
import { useHost } from "../host";

const PLATFORM = /^(dialects|wires)\/(?!adding$|README$)(.+)$/;

export function useDocs(): readonly DocPage[] {
  const host = useHost();
  return useMemo(() => (host === null ? DOCS : DOCS.filter(({ id }) => isKnown(id, host))), [host]);
}

/** Whether a page is about a platform that this host knows, or about no platform. */
function isKnown(id: string, host: HostInfo): boolean {
  const [, folder, file = ""] = PLATFORM.exec(id) ?? [];
  const name = file.replaceAll("_", "-");
  return folder === undefined || host.contracts.includes(name) || (folder === "wires" && host.wires.includes(name));
}
