import type { Language } from "../api/types";

const PYTHON = /^(?:async\s+)?def\s+\w+\s*\(|^(?:from\s+[\w.]+\s+import\s|import\s+[\w.]+\s*(?:,|as\s|$))|^class\s+\w[^{\n]*:\s*$/m;
const SCRIPT = /^[ \t]*(?:export\s+(?:default|async|const|function)\b|(?:async\s+)?function\b\s*(?:\w+\s*)?\(|(?:const|let|var)\s+[\w{[]|import\s[^\n]*\bfrom\s+["']|module\.exports\b)/m;
const TYPED = /^[ \t]*(?:export\s+)?(?:type\s+\w+(?:<[^=\n]*>)?\s*=|interface\s+\w[^\n]*\{|enum\s+\w+\s*\{)|[\w)\]}?]\s*:\s*(?:string|number|boolean|any|unknown|void|Record<|Promise<|Array<)|\bas\s+(?:any|const|string|number)\b/m;

/** Return the language in which pasted code is evidently written, if it is another one than the chosen language; else null. */
export function pastedLanguage(code: string, chosen: Language): Language | null {
  const isPython = PYTHON.test(code);
  if (isPython === SCRIPT.test(code)) return null;
  const found: Language = isPython ? "python" : TYPED.test(code) ? "typescript" : "javascript";
  const runsAsIt = found === chosen || (found === "javascript" && chosen === "typescript");
  return runsAsIt ? null : found;
}
