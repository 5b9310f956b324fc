/** Probable mistakes in code that loads, such as undefined names: requested once the user has changed the code. */
import { useEffect, useRef, useState } from "preact/hooks";
import { type LanguageServer, START } from "../editor/language";
import type { Mark } from "../editor/mirror";

const NONE: readonly Mark[] = [];
const UNUSED = /unused|never used/;

export function useRemarks(code: string, server: () => LanguageServer | null, loads: boolean): readonly Mark[] {
  const [found, setFound] = useState<{ of: string; marks: readonly Mark[] }>({ of: "", marks: NONE });
  const first = useRef<string | null>(null);
  first.current ??= code === "" ? null : code;
  const asked = loads && first.current !== null && code !== first.current;
  useEffect(() => {
    const asking = asked ? server() : null;
    if (asking === null) return;
    const abort = new AbortController();
    asking.ask("problems", code, START, abort.signal).then(
      ({ problems }) => !abort.signal.aborted && setFound({ of: code, marks: problems.map(({ line, column, message }): Mark => ({ line, column, severity: UNUSED.test(message) ? "info" : "warning", message })) }),
      () => {},
    );
    return () => abort.abort();
  }, [code, asked]);
  return found.of === code && asked ? found.marks : NONE;
}
