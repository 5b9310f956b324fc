import { plain } from "../shown-text";

/** Shows a message of the host; the parts between backticks are shown as code. */
export function Prose({ text, most = 4000 }: { text: string; most?: number }) {
  const parts = plain(text.slice(0, most)).split(/`([^`\n]{1,200})`/);
  return (
    <>
      {parts.map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))}
      {text.length > most && "…"}
    </>
  );
}
