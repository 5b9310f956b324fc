/** The use of models and other hosts by rows, in words. */
import type { ModelUsage } from "../api/types";
import { bytes, count, counted, rounded } from "./format";

export function usageInWords(usage: ModelUsage): string {
  const asked = usage.requests > 0 || usage.connections === 0;
  const parts = [
    asked && counted(usage.requests, "model request"),
    usage.replayed > 0 && counted(usage.replayed, "recorded answer"),
    usage.requests > 0 && `${count(usage.input_tokens)} + ${count(usage.output_tokens)} tokens${usage.estimated > 0 ? ` (estimated for ${counted(usage.estimated, "request")})` : ""}`,
    usage.requests > 0 && (usage.cost === null ? "cost not known" : `cost ${rounded(usage.cost)}`),
    usage.connections > 0 && `${counted(usage.connections, "connection")}, ${bytes(usage.network_bytes)}`,
  ];
  return parts.filter(Boolean).join(" · ");
}
