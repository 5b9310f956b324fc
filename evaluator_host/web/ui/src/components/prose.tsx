import type { Note } from "../api/types";
import { inPageWords } from "../page-words";
import { Link } from "../router";
import { plain } from "../shown-text";

/** Shows a message of the host in the words of the pages; parts between backticks are shown as code, and names of documentation pages as links. */
export function Prose({ text, most = 4000 }: { text: string; most?: number }) {
  const parts = plain(inPageWords(text.slice(0, most))).split(/(`[^`\n]{1,200}`|docs\/[a-z]+\.md)/);
  return (
    <>
      {parts.map((part, index) => {
        if (index % 2 === 0) return part;
        const page = part.slice(5, -3);
        return part.startsWith("`") ? <code key={index}>{part.slice(1, -1)}</code> : <Link key={index} to={`/help/${page}`}>{page}</Link>;
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
