// The page at /docs: shows the host's routes from /openapi.json, to read and to try, and loads nothing from other sites.
import { recall, recallInTab } from "./storage";

interface Request {
  url: string;
  headers: Record<string, string>;
}

/** The part of Swagger UI that plugins use here: its copy of React. */
interface Swagger {
  React: { createElement(tag: string, attributes: { className: string }, ...content: string[]): unknown };
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

function link(text: string, href: string): void {
  document.getElementById("said")!.append(" · ", Object.assign(document.createElement("a"), { href, textContent: text }));
}

function withKey(request: Request): Request {
  if (new URL(request.url, location.href).origin === location.origin) Object.assign(request.headers, { ...headers, ...request.headers });
  return request;
}

/** Components without Swagger UI's second `h1`, and without its link inside the button that opens an operation. */
function accessible({ React }: Swagger): unknown {
  const DeepLink = ({ text }: { text: string }) => React.createElement("span", { className: "nostyle" }, text);
  return { components: { InfoContainer: () => null, DeepLink } };
}

/** Labels the text fields of requests, lets the keyboard scroll the examples, and gives the heading of the schemas the level of the tags' headings, as soon as these parts appear. */
function describeParts(): void {
  for (const field of document.querySelectorAll("#api textarea:not([aria-label])")) field.setAttribute("aria-label", "Request body");
  for (const example of document.querySelectorAll("#api pre:not([tabindex])")) example.setAttribute("tabindex", "0");
  document.querySelector("#api .models > h4")?.setAttribute("aria-level", "3");
}

async function show(): Promise<void> {
  const of = new URLSearchParams(location.search).get("of");
  const answer = await fetch(of === null ? "/openapi.json" : `/openapi.json?of=${encodeURIComponent(of)}`, { headers });
  if (answer.status === 401) return say("This host needs a key: enter it in the workbench in this tab, then come back.");
  if (!answer.ok) return say(`The host did not send its description (status ${answer.status}). Load the page again.`);
  new MutationObserver(describeParts).observe(document.getElementById("api")!, { childList: true, subtree: true });
  const spec = (await answer.json()) as { info: { title: string; version: string }; "x-documents"?: string[] };
  say(`${spec.info.title} ${spec.info.version}`);
  for (const name of spec["x-documents"] ?? []) link(`Routes of ${name}`, `/docs?of=${encodeURIComponent(name)}`);
  if (of !== null) link("The host's own routes", "/docs");
  SwaggerUIBundle({
    spec,
    dom_id: "#api",
    deepLinking: true,
    defaultModelsExpandDepth: 0,
    validatorUrl: null,
    requestInterceptor: withKey,
    syntaxHighlight: { activated: true, theme: "tomorrow-night" },
    plugins: [accessible],
  });
}

show().catch(() => say("The host is not responding. Is it still running?"));
