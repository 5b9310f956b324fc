/** A loading indicator; it appears after a short delay, so that quick loads do not flicker. */
export function Spinner({ label, page = false }: { label: string; page?: boolean }) {
  return (
    <p class={page ? "spinner spinner-page" : "spinner"} role="status">
      <span class="spinner-ring" aria-hidden="true" />
      <span>{label}…</span>
    </p>
  );
}
