import type { Difference } from "../api/types";

/** The difference between two means, in words; the host's note if there is no interval. */
export function significance({ significant, difference, interval, note }: Difference): string {
  if (significant) return "significant";
  if (difference === 0) return "no difference";
  return interval === null ? (note ?? "no interval") : "may be chance";
}
