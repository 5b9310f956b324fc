import { ApiError } from "../api/http";
import { Empty } from "../components/empty";
import { ErrorNote } from "../components/error-note";
import { inPageWords } from "../page-words";
import { Link } from "../router";

interface Props {
  error: unknown;
  onRetry: () => void;
  /** Link to the list of all records; `at` returns the path of one. */
  list: { to: string; label: string };
  at?: (name: string) => string;
}

const MEANT = /; did you mean ([^?]+)\?$/;

/** Shown in place of a missing record: the error, the record that was probably meant, and the list of all; other errors are shown unchanged. */
export function NotThere({ error, onRetry, list, at }: Props) {
  if (!(error instanceof ApiError) || error.status !== 404) return <ErrorNote error={error} onRetry={onRetry} />;
  const said = inPageWords(error.message);
  const meant = MEANT.exec(said)?.[1];
  const what = said.replace(MEANT, "");
  return (
    <Empty title={`${what.charAt(0).toUpperCase()}${what.slice(1)}.`}>
      {meant !== undefined && at !== undefined ? (
        <p>
          Did you mean <Link to={at(meant)}>{meant}</Link>?
        </p>
      ) : (
        <p>
          Perhaps it was deleted, or the link belongs to another host, or to a workspace that your key cannot open.
        </p>
      )}
      <Link to={list.to} class="button">
        {list.label}
      </Link>
    </Empty>
  );
}
