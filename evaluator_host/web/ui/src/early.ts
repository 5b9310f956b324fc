// Runs ahead of everything: sets the theme that was chosen before anything is painted, and asks for the scripts of the page at once.
import { match } from "./paths";

/** The scripts of each page beside those of the app, by the pattern of its path; build.mjs knows them. */
declare const PAGE_SCRIPTS: Record<string, string[]>;

try {
  const chosen = localStorage.getItem("theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset["theme"] = chosen;
} catch {
  // no storage: the system's theme it is
}

const [, scripts = []] = Object.entries(PAGE_SCRIPTS).find(([pattern]) => match(pattern, location.pathname) !== null) ?? [];
for (const name of scripts) document.head.append(Object.assign(document.createElement("link"), { rel: "modulepreload", href: `/assets/${name}` }));
