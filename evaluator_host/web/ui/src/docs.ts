// The page at /docs: what the host says of itself at /openapi.json, to be read and tried, with nothing from elsewhere.
import { recall, recallInTab } from "./storage";

interface Request {
  url: string;
  headers: Record<string, string>;
}

declare const SwaggerUIBundle: (options: { spec: unknown; dom_id: string; requestInterceptor: (request: Request) => Request; [other: string]: unknown }) => unknown;

const system = matchMedia("(prefers-color-scheme: dark)");

/** The theme of the workbench; Swagger UI has a class for the dark one. */
function followTheme(): void {
  const chosen = recall("theme");
  document.documentElement.classList.toggle("dark-mode", chosen === null ? system.matches : chosen === "dark");
}

followTheme();
system.addEventListener("change", followTheme);

const key = recallInTab("key");
const headers: Record<string, string> = key === null ? {} : { Authorization: `Bearer ${key}` };

function say(text: string): void {
  document.getElementById("said")!.append(` · ${text}`);
}

function withKey(request: Request): Request {
  if (new URL(request.url, location.href).origin === location.origin) Object.assign(request.headers, { ...headers, ...request.headers });
  return request;
}

async function show(): Promise<void> {
  const answer = await fetch("/openapi.json", { headers });
  if (answer.status === 401) return say("This host wants a key: give it to the workbench in this tab, then come back.");
  if (!answer.ok) return say(`The host does not describe itself: ${answer.status}.`);
  SwaggerUIBundle({ spec: await answer.json(), dom_id: "#api", deepLinking: true, defaultModelsExpandDepth: 0, validatorUrl: null, requestInterceptor: withKey });
}

show().catch(() => say("The host does not answer."));
