/** The pages of rows visited so far. The host's cursors only go forward, so the tab remembers the earlier pages. */
import { keepInTab, recallInTab } from "../storage";

export interface Step {
  /** Number of rows before the page. */
  at: number;
  cursor: string | null;
}

const KEY = "rows";
const START: Step = { at: 0, cursor: null };

/** Return the pages visited before `here` in this list, the first one first. Steps of another list are dropped. */
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
