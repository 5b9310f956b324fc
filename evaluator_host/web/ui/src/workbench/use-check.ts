/** Checks the code while the user types, after its packages have been installed. */
import { useEffect, useState } from "preact/hooks";
import { call, isAbort } from "../api/http";
import type { CheckReport, EvaluatorIn } from "../api/types";
import type { Build } from "./use-build";

const PAUSE_MS = 450; // milliseconds to wait after the last key

export interface Checked {
  /** The latest report; the code may have changed since. */
  report: CheckReport | null;
  /** The error if the check itself failed. */
  error: unknown;
  checking: boolean;
  /** Whether the code has changed since the report. */
  stale: boolean;
}

type Seen = Omit<Checked, "stale"> & { of: string };

const NOTHING: Seen = { report: null, error: null, checking: false, of: "" };

/**
 * Check `evaluator` whenever it changes; `turn` changes when another evaluator is opened.
 *
 * While its packages are being installed, the code is checked without them, for syntax errors only.
 */
export function useCheck(evaluator: EvaluatorIn, packages: Build["state"], turn: number): Checked {
  const [checked, setChecked] = useState<Seen>(NOTHING);
  const ready = packages === "ready" || packages === "none";
  const building = packages === "building";
  const asked = JSON.stringify(ready ? evaluator : { ...evaluator, packages: undefined });
  useEffect(() => setChecked(NOTHING), [turn]);
  useEffect(() => {
    if (evaluator.code.trim() === "") {
      setChecked(NOTHING);
      return;
    }
    const abort = new AbortController();
    const timer = setTimeout(() => {
      setChecked((before) => ({ ...before, checking: true }));
      call<CheckReport>("POST", "/v1/check", { body: { evaluator: JSON.parse(asked) }, signal: abort.signal }).then(
        (report) => setChecked({ report: building ? readable(report) : report, error: null, checking: false, of: asked }),
        (error: unknown) => !isAbort(error) && setChecked({ report: null, error, checking: false, of: asked }),
      );
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [asked, building]);
  return { report: checked.report, error: checked.error, checking: checked.checking, stale: checked.of !== asked };
}

/** Return the report if the code has a syntax error, which no package can change; otherwise null. */
function readable(report: CheckReport): CheckReport | null {
  const problems = report.problems.filter(({ code }) => code === "syntax_error");
  return problems.length === 0 ? null : { ...report, problems, missing_imports: [] };
}
