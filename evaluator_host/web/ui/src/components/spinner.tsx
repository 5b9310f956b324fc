/** Something is on its way; shown a moment late, so that what is quick does not flicker. */
export function Spinner({ label, page = false }: { label: string; page?: boolean }) {
  return (
    <p class={page ? "spinner spinner-page" : "spinner"} role="status">
      <span class="spinner-ring" aria-hidden="true" />
      <span>{label}…</span>
    </p>
  );
}
