import type { Note } from "../api/types";
import { inPageWords } from "../page-words";
import { Link } from "../router";
import { plain } from "../shown-text";

/** Shows a message of the host in the words of the pages; parts between backticks are shown as code, and names of pages and of documentation pages as links. */
export function Prose({ text, most = 4000 }: { text: string; most?: number }) {
  const parts = plain(inPageWords(text.slice(0, most))).split(/(`[^`\n]{1,200}`|docs\/[a-z]+\.md|(?<=the page )\/models\b)/);
  return (
    <>
      {parts.map((part, index) => {
        if (index % 2 === 0) return part;
        if (part.startsWith("`")) return <code key={index}>{part.slice(1, -1)}</code>;
        if (part === "/models") return <Link key={index} to={part}>Models</Link>;
        const page = part.slice(5, -3);
        return <Link key={index} to={`/help/${page}`}>Help: {page}</Link>;
      })}
      {text.length > most && "…"}
    </>
  );
}

/** The text of a warning of the host, with its remedy. */
export function NoteText({ note }: { note: Pick<Note, "message" | "remedy"> }) {
  return (
    <>
      <Prose text={note.message} />
      {note.remedy && (
        <>
          {"; "}
          <Prose text={note.remedy} />
        </>
      )}
    </>
  );
}
