/** The pages of rows that somebody came through. The host's cursors lead forth alone; the way back is kept for the tab. */
import { keepInTab, recallInTab } from "../storage";

export interface Step {
  /** How many rows were before the page. */
  at: number;
  cursor: string | null;
}

const KEY = "rows";
const START: Step = { at: 0, cursor: null };

/** The pages before `here` in the list that `list` names, the first one first; what is kept of another list is forgotten. */
export function trailTo(list: string, here: Step): Step[] {
  const before = here.at === 0 ? [] : [START, ...kept(list).filter(({ at }) => at > 0 && at < here.at)];
  keepInTab(KEY, JSON.stringify({ list, steps: [...before, here] }));
  return before;
}

function kept(list: string): Step[] {
  try {
    const found = JSON.parse(recallInTab(KEY) ?? "null") as { list?: string; steps?: Step[] } | null;
    return found?.list === list && Array.isArray(found.steps) ? found.steps : [];
  } catch {
    return [];
  }
}
