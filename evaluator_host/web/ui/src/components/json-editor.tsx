import { useMemo } from "preact/hooks";
import { readJson } from "../json";
import { CodeEditor } from "./code-editor";

interface JsonEditorProps {
  label: string;
  value: string;
  onValue?: (value: string) => void;
  readOnly?: boolean;
  hint?: string;
  onSubmit?: () => void;
}

/** An editor for one JSON value. Shows where the text is not valid JSON; an empty editor is valid, and gives no value. */
export function JsonEditor({ label, value, onValue, readOnly = false, hint, onSubmit }: JsonEditorProps) {
  const read = useMemo(() => readJson(value), [value]);
  const marks = useMemo(() => (read.ok || read.line === null ? [] : [{ line: read.line, column: read.column, severity: "error" as const, message: read.message }]), [read]);
  return (
    <div class="json-editor stack-tight">
      <CodeEditor label={label} value={value} syntax="json" marks={marks} readOnly={readOnly} class={read.ok ? "" : "code-invalid"} {...(onValue ? { onValue } : {})} {...(hint ? { hint } : {})} {...(onSubmit ? { onSubmit } : {})} />
      {!read.ok && (
        <p class="field-error" role="status">
          {read.message}
        </p>
      )}
    </div>
  );
}
