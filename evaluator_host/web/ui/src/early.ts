// Runs before everything else: sets the theme that was chosen before anything is painted, and asks for the scripts of the page at once.
import { match } from "./paths";

/** The scripts of each page besides those of the app, by the pattern of its path; filled in by build.mjs. */
declare const PAGE_SCRIPTS: Record<string, string[]>;

try {
  const chosen = localStorage.getItem("theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset["theme"] = chosen;
} catch {
  // without storage, the system's theme applies
}

const [, scripts = []] = Object.entries(PAGE_SCRIPTS).find(([pattern]) => match(pattern, location.pathname) !== null) ?? [];
for (const name of scripts) document.head.append(Object.assign(document.createElement("link"), { rel: "modulepreload", href: `/assets/${name}` }));
