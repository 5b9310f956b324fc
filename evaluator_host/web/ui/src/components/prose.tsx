import { plain } from "../shown-text";

/** A sentence of the host's; what it puts between backticks is code. Text of programs in it stays text. */
export function Prose({ text, most = 4000 }: { text: string; most?: number }) {
  const parts = plain(text.slice(0, most)).split(/`([^`\n]{1,200})`/);
  return (
    <>
      {parts.map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))}
      {text.length > most && "…"}
    </>
  );
}
