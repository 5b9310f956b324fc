// Sets the theme that was chosen before anything is painted; runs as a script of its own, ahead of the modules.
try {
  const chosen = localStorage.getItem("theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset["theme"] = chosen;
} catch {
  // without storage, the system's theme applies
}
