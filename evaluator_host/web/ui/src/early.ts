// Runs before everything else: sets the chosen theme before anything is painted, and loads the app after the first frame.
import { match } from "./paths";

/** The address of the app's module; the names of the other modules that it needs; the address of its styles. All are filled in by build.mjs. */
declare const APP: string;
declare const APP_SCRIPTS: string[];
declare const STYLES: string;

/** The scripts of each page besides those of the app, by the pattern of its path. */
declare const PAGE_SCRIPTS: Record<string, string[]>;

try {
  const chosen = localStorage.getItem("theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset["theme"] = chosen;
} catch {
  // without storage, the system's theme applies
}

let isStarted = false;

function add(rel: string, href: string): HTMLLinkElement {
  const link = Object.assign(document.createElement("link"), { rel, href });
  document.head.append(link);
  return link;
}

function start(): void {
  if (isStarted) return;
  isStarted = true;
  const [, scripts = []] = Object.entries(PAGE_SCRIPTS).find(([pattern]) => match(pattern, location.pathname) !== null) ?? [];
  add("modulepreload", APP);
  for (const name of [...APP_SCRIPTS, ...scripts]) add("modulepreload", `/assets/${name}`);
  const styles = add("stylesheet", STYLES);
  // show the app only once its styles have loaded
  styles.onload = styles.onerror = () => void import(APP);
}

if (document.visibilityState === "hidden") {
  start(); // a tab in the background paints no frames
} else {
  document.addEventListener("visibilitychange", start, { once: true });
  requestAnimationFrame(() => setTimeout(start)); // loading these files earlier would delay the first frame
}
