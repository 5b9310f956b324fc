/** Filters of a list that this browser keeps; each is a link, because a page's address contains its filters. */
import { useState } from "preact/hooks";
import { Button } from "../components/button";
import { Link, usePlace } from "../router";
import { keep, recall } from "../storage";
import { oneLine } from "./format";

const MOST = 12;
// parameters that only say which page or row of the list is shown
const PLACES = ["cursor", "at", "before", "first", "row", "peek"];

interface Props {
  /** Name of the list, under which its filters are kept. */
  list: string;
  /** Parameters of the query that are part of a filter. */
  names: readonly string[];
}

export function SavedFilters({ list, names }: Props) {
  const { path, query } = usePlace();
  const [kept, setKept] = useState(() => read(list));
  const chosen = new URLSearchParams(names.flatMap((name) => (query.get(name) ? [[name, query.get(name)!]] : []))).toString();
  const rest = [...query].filter(([name]) => !names.includes(name) && !PLACES.includes(name));
  const change = (filters: readonly string[]) => {
    setKept(filters);
    keep(keyOf(list), filters.length === 0 ? null : JSON.stringify(filters));
  };
  if (kept.length === 0 && chosen === "") return null;
  return (
    <div class="chips saved-filters" role="group" aria-label="Kept filters">
      {kept.map((filter) => (
        <span key={filter} class={filter === chosen ? "chip chip-accent" : "chip"}>
          <Link to={`${path}?${new URLSearchParams([...rest, ...new URLSearchParams(filter)])}`} aria-current={filter === chosen ? "true" : undefined}>
            {wordsOf(filter)}
          </Link>
          <button type="button" class="chip-remove" aria-label={`Forget the filter ${wordsOf(filter)}`} onClick={() => change(kept.filter((one) => one !== filter))}>
            <span aria-hidden="true">×</span>
          </button>
        </span>
      ))}
      {chosen !== "" && !kept.includes(chosen) && (
        <Button kind="quiet" small title="Kept in this browser; to share the filter, copy the address of the page" onClick={() => change([...kept, chosen].slice(-MOST))}>
          Keep this filter
        </Button>
      )}
    </div>
  );
}

function keyOf(list: string): string {
  return `filters of ${list}`;
}

function read(list: string): readonly string[] {
  try {
    const found: unknown = JSON.parse(recall(keyOf(list)) ?? "[]");
    return Array.isArray(found) ? found.filter((one) => typeof one === "string") : [];
  } catch {
    return [];
  }
}

/** The values of a filter in words: "failed · exact". */
function wordsOf(filter: string): string {
  return oneLine([...new URLSearchParams(filter).values()].join(" · ").replaceAll("\n", ", "), 60);
}
