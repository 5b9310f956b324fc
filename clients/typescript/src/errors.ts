/** A wrong field of a request: where it is, and what is wrong with it. */
export interface Problem {
  field: string;
  message: string;
  hint?: string | null;
}

/** The host refused or failed a request. Failures of an evaluator's code are results, never errors. */
export class HostError extends Error {
  /**
   * @param status HTTP status; 0 when nothing answered.
   * @param code Stable name of the error, such as `not_found` or `busy` (docs/api.md lists them).
   * @param problems Every wrong field of the request.
   * @param retryAfterS Seconds after which the host asks to try again; null if the response does not say.
   */
  constructor(
    message: string,
    readonly status: number,
    readonly code: string,
    readonly problems: readonly Problem[] = [],
    readonly retryAfterS: number | null = null,
  ) {
    super(message);
    this.name = "HostError";
  }
}

/** Nothing answers at the URL, the response is not from an Evaluator Host, or it took longer than `timeoutMs`. */
export class HostUnreachable extends HostError {
  constructor(message: string, status = 0) {
    super(message, status, "host_unreachable");
    this.name = "HostUnreachable";
  }
}

/** Return the error that a response describes (application/problem+json). */
export async function errorOf(response: Response): Promise<HostError> {
  const text = await response.text().catch(() => "");
  let body: { code?: unknown; detail?: unknown; errors?: Problem[] } | null = null;
  try {
    body = JSON.parse(text);
  } catch {
    body = null;
  }
  if (typeof body !== "object" || body === null || typeof body.code !== "string") {
    return new HostUnreachable(`${response.url} answered ${response.status}, but not as an Evaluator Host does; check the address`, response.status);
  }
  const after = Number(response.headers.get("Retry-After") ?? Number.NaN);
  const faults = (body.errors ?? []).map(({ field, message, hint }) => `\n  ${field}: ${message}${hint ? ` (${hint})` : ""}`);
  return new HostError(`${String(body.detail)}${faults.join("")}`, response.status, body.code, body.errors ?? [], Number.isFinite(after) ? Math.max(0, after) : null);
}
