/** The frame of a page before its script runs. build.mjs writes it into index.html; the app replaces it. */
import { NAVIGATION } from "../routes";

export function Shell() {
  return (
    <header class="frame-header">
      <a href="/" class="brand">
        <Brand />
      </a>
      <nav class="frame-nav" aria-label="Main">
        {NAVIGATION.map(({ to, label }) => (
          <a key={to} href={to}>
            {label}
          </a>
        ))}
      </nav>
    </header>
  );
}

export function Brand() {
  return (
    <>
      <svg class="brand-mark" viewBox="0 0 32 32" aria-hidden="true">
        <rect width="32" height="32" rx="8" class="brand-tile" />
        <path d="M9 21V11h9M9 16h7" class="brand-letter" />
        <path d="m16.500 20.500 2.600 2.500 5-5.500" class="brand-tick" />
      </svg>
      <span class="brand-name">Evaluator Host</span>
    </>
  );
}
