/** Rewrites messages of the host for the pages: labels of fields replace fields of the API. */

const LIMITS: Record<string, string> = { timeout_s: "Timeout (s)", memory_mb: "Memory (MB)", processes: "Processes", disk_mb: "Disk (MB)", log_kb: "Logs (KB)", result_kb: "Result (KB)" };
const SETTINGS: Record<string, string> = { entry: "Entry", config: "Arguments of the class", correct_answer_key: "Correct answer key", score_output: "Score output", integers: "Large integers" };
export const LANGUAGES: Record<string, string> = { python: "Python", javascript: "JavaScript", typescript: "TypeScript" };

const WORDS: readonly (readonly [RegExp, string | ((found: string, ...groups: string[]) => string)])[] = [
  [/set `language` to (\w+)(?: or (\w+))?/g, (_, one = "", other) => `choose ${LANGUAGES[one] ?? one}${other ? ` or ${LANGUAGES[other] ?? other}` : ""} above the code`],
  [/(?:in|to) `packages`/g, "under Packages"],
  [/(?:evaluator\.)?packages\[\d+\]/g, "Packages"],
  [/check returns the restored code as `fix`, and with settings\.repair the host runs that code/g, "the button below the code restores it"],
  [/`?\b(?:evaluator\.)?settings\.(entry|config|correct_answer_key|score_output|integers)\b`?/g, (_, setting = "") => `Settings › ${SETTINGS[setting]}`],
  [/\b(?:evaluator\.)?limits\.(timeout_s|memory_mb|processes|disk_mb|log_kb|result_kb)\b/g, (_, limit = "") => `Settings › ${LIMITS[limit]}`],
  [/set `python` to (3\.\d+)/g, "choose Python $1 in Settings"],
  [/set `contract`/g, "set Settings › Contract"],
  [/register it and name it in `models` \(docs\/models\.md\)/g, "register it on the page /models, and name it in Settings › Models"],
  [/in `models`/g, "in Settings › Models"],
  [/\(`network`\)/g, "(Settings › Hosts)"],
  [/\(`\?replace=true`\)/g, "(Upload a new version…)"],
  [/send (it(?: and the other missing files)?) in `files`, by (?:its path|their paths): \{[^}]*\}; in your project's folder, [^;]*/g, "drop your project's folder on the editor, which adds $1"],
  [/send it in `files`, by its path: \{"([^"]+)": "…"\}/g, "add it with Add a file…, by its path: $1"],
  [/, in `files`: \{[^}]*\}, by its path from this file/g, ", with Add a file…, by its path from this file"],
  [/send it in `files`, and say in `path` [^)]*\), or import/g, "add it with Add a file…, and import"],
  [/send (it|them) in (?:`files` \(texts\) or )?`data`/g, "add $1 with Add a file…"],
  [/(?:send (it|them) |goes )in `files`/g, (_, what) => (what === undefined ? "goes under Add a file…" : `add ${what} with Add a file…`)],
  [/; `evaluator-host [a-z-]+ list` lists the (?:names|ids)/g, ""],
  [/^this workspace has not requested a package set (.+); request one with POST .*/, "there is no package set $1"],
  [/, and say in `path` where the code is, such as [\w./]+/g, ""],
  [/; in your project's folder, `evaluator-host run FILE` sends [^;]*/g, "; or drop your project's folder on the editor"],
];

export function inPageWords(text: string): string {
  return WORDS.reduce((said, [api, page]) => said.replace(api, page as string), text);
}
