import type { Ref } from "preact";
import { useEffect, useImperativeHandle, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Known } from "../editor/knowledge";
import type { LanguageServer } from "../editor/language";
import type { Mark, Mirror, Syntax } from "../editor/mirror";

export type { Mark, Syntax } from "../editor/mirror";

export interface CodeEditorHandle {
  goTo(line: number, column: number | null): void;
  focus(): void;
  /** The text, including keys that are not rendered yet. */
  text(): string;
  /** Replace the text as one change that can be undone; the cursor stays in the same word. */
  replace(text: string): void;
}

interface CodeEditorProps {
  label: string;
  value: string;
  onValue?: (value: string) => void;
  syntax: Syntax;
  marks?: readonly Mark[];
  readOnly?: boolean;
  hint?: string;
  /** Called on Ctrl+Enter or Cmd+Enter. */
  onSubmit?: () => void;
  /** Called after a change with the first syntax error that the editor's own parser finds, or null. */
  onSyntax?: (fault: Mark | null) => void;
  /** Returns facts about the code that completion needs in addition to the grammar. */
  known?: () => Known;
  /** Returns the server that knows names and types of the language and of packages; null if there is none. */
  server?: () => LanguageServer | null;
  wrap?: boolean;
  handle?: Ref<CodeEditorHandle>;
  class?: string;
}

const NO_MARKS: readonly Mark[] = [];

/** A CodeMirror editor. Before CodeMirror has loaded, the text can be read and edited in a plain field. */
export function CodeEditor({ label, value, onValue, syntax, marks = NO_MARKS, readOnly = false, hint = "", onSubmit, onSyntax, known, server, wrap = false, handle, class: given }: CodeEditorProps) {
  const place = useRef<HTMLDivElement>(null);
  const mirror = useRef<Mirror | null>(null);
  const [ready, setReady] = useState(false);
  const latest = useRef({ value, onValue, onSubmit, onSyntax, known, server });
  latest.current = { value, onValue, onSubmit, onSyntax, known, server };

  useEffect(() => {
    let gone = false;
    void import("../editor/mirror").then(({ openMirror }) => {
      if (gone || place.current === null) return;
      mirror.current = openMirror({
        parent: place.current,
        label,
        text: latest.current.value,
        syntax,
        readOnly,
        hint,
        onChange: (text) => {
          latest.current.value = text;
          latest.current.onValue?.(text);
        },
        onSubmit: () => latest.current.onSubmit?.(),
        known: latest.current.known === undefined ? undefined : () => latest.current.known!(),
        server: () => latest.current.server?.() ?? null,
        onSyntax: latest.current.onSyntax === undefined ? undefined : (fault) => latest.current.onSyntax?.(fault),
      });
      setReady(true);
    });
    return () => {
      gone = true;
      mirror.current?.destroy();
      mirror.current = null;
    };
  }, [readOnly, label]);

  // This layout effect runs before the next key press; a later update would undo that key.
  useLayoutEffect(() => mirror.current?.setText(value), [value, ready]);
  useEffect(() => mirror.current?.setSyntax(syntax), [syntax, ready]);
  useEffect(() => mirror.current?.setWrap(wrap), [wrap, ready]);
  useEffect(() => mirror.current?.setMarks(marks), [marks, ready]);
  useImperativeHandle(handle ?? null, () => ({
    goTo: (line: number, column: number | null) => mirror.current?.goTo(line, column),
    focus: () => mirror.current?.focus(),
    text: () => latest.current.value,
    replace: (text: string) => mirror.current?.replace(text),
  }));

  return (
    <div class={`code-editor ${given ?? ""}`} data-ready={ready}>
      {!ready && (
        <textarea class="code-waiting" aria-label={label} spellcheck={false} readOnly={readOnly} value={value} placeholder={hint} onInput={(event) => onValue?.(event.currentTarget.value)} />
      )}
      <div ref={place} class="code-place" />
    </div>
  );
}
