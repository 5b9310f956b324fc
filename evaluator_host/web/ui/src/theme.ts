/** The colour theme: the system's, unless the user has chosen. */
import { useEffect, useState } from "preact/hooks";
import { keep } from "./storage";

export type Theme = "light" | "dark";

const system = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

export function currentTheme(): Theme {
  const chosen = document.documentElement.dataset["theme"];
  if (chosen === "light" || chosen === "dark") return chosen;
  return system.matches ? "dark" : "light";
}

function tell(): void {
  for (const listener of listeners) listener();
}

system.addEventListener("change", tell);

/** Choose a theme; choosing the system's own leaves the choice to the system. */
export function chooseTheme(theme: Theme): void {
  const isSystem = theme === (system.matches ? "dark" : "light");
  if (isSystem) delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
  keep("theme", isSystem ? null : theme);
  tell();
}

/** Returns the theme, and renders again whenever it changes. */
export function useTheme(): Theme {
  const [theme, setTheme] = useState(currentTheme);
  useEffect(() => {
    const listener = () => setTheme(currentTheme());
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
  return theme;
}

/** A colour of the style sheet in the current theme, to draw on a canvas: `colour("--pass")` is `rgb(…)`. */
export function colour(name: string): string {
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = `var(${name})`; // this resolves light-dark(…), which reading the custom property would not
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
