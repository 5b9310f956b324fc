/** CodeMirror as the workbench uses it. Loaded only with `import()`, so that no page waits for it. */
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { javascript } from "@codemirror/lang-javascript";
import { json } from "@codemirror/lang-json";
import { python } from "@codemirror/lang-python";
import { bracketMatching, ensureSyntaxTree, forceParsing, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting, syntaxTreeAvailable } from "@codemirror/language";
import { type Diagnostic, lintGutter, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers, placeholder, ViewPlugin, type ViewUpdate } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { codeCompletions, contractHover, type Known, signatureHelp } from "./knowledge";
import type { LanguageServer } from "./language";

export type Syntax = "python" | "javascript" | "typescript" | "json" | "text";

/** A fault at a place of the text; lines and columns count from 1. */
export interface Mark {
  line: number;
  column: number | null;
  severity: "error" | "warning" | "info";
  message: string;
}

export interface MirrorOptions {
  parent: HTMLElement;
  label: string;
  text: string;
  syntax: Syntax;
  readOnly: boolean;
  hint: string;
  onChange: (text: string) => void;
  /** Called on Ctrl+Enter or Cmd+Enter. */
  onSubmit: () => void;
  /** Called after a change with the first syntax error that the editor's own parser finds, or null. */
  onSyntax?: ((fault: Mark | null) => void) | undefined;
  /** Returns facts about the code in addition to its grammar; parameters and row keys are completed first. */
  known?: (() => Known) | undefined;
  /** Returns the server that knows names and types of the language and of packages; null if there is none. */
  server?: (() => LanguageServer | null) | undefined;
}

export interface Mirror {
  setText(text: string): void;
  setSyntax(syntax: Syntax): void;
  setWrap(wrap: boolean): void;
  setMarks(marks: readonly Mark[]): void;
  /** Put the cursor at a place and scroll to it. */
  goTo(line: number, column: number | null): void;
  focus(): void;
  /** Replace the text as one change that can be undone; the cursor stays in the same word. */
  replace(text: string): void;
  destroy(): void;
}

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.modifier, tags.operatorKeyword, tags.definitionKeyword, tags.controlKeyword], color: "var(--code-keyword)" },
  { tag: [tags.string, tags.special(tags.string), tags.regexp], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--code-number)" },
  { tag: [tags.comment, tags.docComment], color: "var(--code-comment)", fontStyle: "italic" },
  { tag: [tags.function(tags.variableName), tags.function(tags.propertyName), tags.definition(tags.function(tags.variableName))], color: "var(--code-function)" },
  { tag: [tags.typeName, tags.className, tags.namespace], color: "var(--code-type)" },
  { tag: [tags.propertyName], color: "var(--code-property)" },
  { tag: [tags.meta], color: "var(--code-comment)" },
  { tag: tags.invalid, color: "var(--fail)" },
]);

const looks = EditorView.theme({
  "&": { fontSize: "var(--code-size)", backgroundColor: "transparent", color: "var(--text)", height: "100%" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55", overflow: "auto" },
  ".cm-content": { caretColor: "var(--text)", padding: "8px 0" },
  ".cm-cursor, .cm-dropCursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--muted)", border: "none" },
  ".cm-lineNumbers .cm-gutterElement": { padding: "0 8px 0 10px", minWidth: "32px" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "transparent" },
  "&.cm-focused .cm-activeLine": { backgroundColor: "var(--line-active)" },
  "&.cm-focused .cm-activeLineGutter": { backgroundColor: "var(--line-active)", color: "var(--text)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--selection)" },
  ".cm-selectionMatch": { backgroundColor: "var(--selection)" },
  "&:not(.cm-focused) .cm-matchingBracket": { backgroundColor: "transparent" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--selection)", outline: "1px solid var(--border-strong)" },
  ".cm-placeholder": { color: "var(--muted)" },
  ".cm-tooltip": { backgroundColor: "var(--surface-raised)", color: "var(--text)", border: "1px solid var(--border)", borderRadius: "6px", boxShadow: "var(--shadow)", overflow: "hidden" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-diagnostic": { padding: "6px 10px", maxWidth: "60ch", whiteSpace: "pre-wrap", borderLeftWidth: "3px" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--fail)" },
  ".cm-diagnostic-warning": { borderLeftColor: "var(--warn)" },
  ".cm-known": { maxWidth: "60ch", padding: "6px 10px" },
  ".cm-known p + p": { color: "var(--muted)" },
  ".cm-known pre": { maxHeight: "16em", overflow: "auto", marginTop: "4px", whiteSpace: "pre-wrap", overflowWrap: "anywhere", color: "var(--muted)" },
  ".cm-completionDetail": { marginLeft: "12px", color: "var(--muted)", fontStyle: "normal", fontFamily: "var(--sans)" },
  "li[aria-selected] .cm-completionDetail": { color: "var(--on-accent)" },
  ".cm-panels": { backgroundColor: "var(--surface-raised)", color: "var(--text)" },
  ".cm-panels.cm-panels-top": { borderBottom: "1px solid var(--border)" },
  ".cm-panel.cm-search": { padding: "6px 10px" },
  ".cm-textfield": { backgroundColor: "var(--surface)", border: "1px solid var(--border-strong)", borderRadius: "4px", color: "var(--text)" },
  ".cm-button": { backgroundImage: "none", backgroundColor: "var(--surface)", border: "1px solid var(--border-strong)", borderRadius: "4px", color: "var(--text)" },
  // with another layer of red below the text, the text would be hard to read
  "& .cm-deletedChunk .cm-deletedText": { background: "none", boxShadow: "inset 0 -2px 0 var(--fail)" },
  ".cm-searchMatch": { backgroundColor: "var(--warn-soft)" },
  ".cm-searchMatch-selected": { backgroundColor: "var(--selection)", outline: "1px solid var(--accent)" },
});

function grammar(syntax: Syntax): Extension {
  switch (syntax) {
    case "python":
      return [python(), indentUnit.of("    ")];
    case "javascript":
      return [javascript(), indentUnit.of("  ")];
    case "typescript":
      return [javascript({ typescript: true }), indentUnit.of("  ")];
    case "json":
      return [json(), indentUnit.of("  ")];
    case "text":
      return [];
  }
}

/** The nonce that lets CodeMirror's own style sheets through the page's policy. */
function styleNonce(): string {
  return document.querySelector<HTMLMetaElement>('meta[name="style-nonce"]')?.nonce ?? "";
}

const WHOLE_COLOURS_MS = 80;

/** Colours the rest of the visible text if the editor's own parser gave up on a busy machine. */
const wholeColours = ViewPlugin.fromClass(
  class {
    private timer: ReturnType<typeof setTimeout> | undefined;

    constructor(private readonly view: EditorView) {
      this.later();
    }

    update(update: ViewUpdate) {
      if (update.docChanged || update.viewportChanged) this.later();
    }

    private later() {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => {
        const { state, viewport } = this.view;
        if (!syntaxTreeAvailable(state, viewport.to) && !forceParsing(this.view, viewport.to, WHOLE_COLOURS_MS)) this.later();
      }, 4 * WHOLE_COLOURS_MS);
    }

    destroy() {
      clearTimeout(this.timer);
    }
  },
);

const SYNTAX_AFTER_MS = 150; // milliseconds after the last key, because half a word is not a mistake
const SYNTAX_BUDGET_MS = 40;

/** Reports the first place that the grammar cannot read; the host's check replaces this later. */
function syntaxReports(tell: (fault: Mark | null) => void): Extension {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return EditorView.updateListener.of((update) => {
    if (!update.docChanged) return;
    clearTimeout(timer);
    timer = setTimeout(() => tell(syntaxFault(update.view.state)), SYNTAX_AFTER_MS);
  });
}

function syntaxFault(state: EditorState): Mark | null {
  const tree = ensureSyntaxTree(state, state.doc.length, SYNTAX_BUDGET_MS);
  if (tree === null) return null;
  let at: number | null = null;
  tree.iterate({
    enter: (node) => {
      if (at === null && node.type.isError) at = node.from;
      return at === null;
    },
  });
  if (at === null) return null;
  const line = state.doc.lineAt(at);
  return { line: line.number, column: at - line.from + 1, severity: "error", message: "Syntax error" };
}

/** The extensions that all editors share, including the merge view. */
export function everyEditor(syntax: Syntax): Extension {
  return [EditorView.cspNonce.of(styleNonce()), looks, syntaxHighlighting(colours), grammar(syntax), wholeColours];
}

export function openMirror(options: MirrorOptions): Mirror {
  const syntaxPart = new Compartment();
  const wrapPart = new Compartment();
  const isText = options.syntax === "json" || options.syntax === "text";
  let silent = false;
  const server = options.server ?? (() => null);
  const submit = () => {
    options.onSubmit();
    return true;
  };
  const editing: Extension = options.readOnly
    ? [EditorState.readOnly.of(true), EditorView.editable.of(true)]
    : [
        history(),
        closeBrackets(),
        indentOnInput(),
        autocompletion({ icons: false, ...(options.known ? { override: codeCompletions(options.known, server) } : {}) }),
        options.known ? [contractHover(options.known, server), signatureHelp(options.known, server)] : [],
        highlightActiveLine(),
        highlightActiveLineGutter(),
        EditorView.updateListener.of((update) => {
          if (update.docChanged && !silent) options.onChange(update.state.doc.toString());
        }),
      ];
  const view = new EditorView({
    parent: options.parent,
    state: EditorState.create({
      doc: options.text,
      extensions: [
        keymap.of([{ key: "Mod-Enter", run: submit, preventDefault: true }]),
        EditorView.cspNonce.of(styleNonce()),
        looks,
        syntaxHighlighting(colours),
        wholeColours,
        options.onSyntax && !options.readOnly ? syntaxReports(options.onSyntax) : [],
        syntaxPart.of(grammar(options.syntax)),
        isText ? [] : [lineNumbers(), lintGutter()],
        wrapPart.of(isText ? EditorView.lineWrapping : []),
        drawSelection(),
        bracketMatching(),
        highlightSelectionMatches(),
        search({ top: true }),
        options.hint ? placeholder(options.hint) : [],
        EditorView.contentAttributes.of({ "aria-label": options.label, tabindex: "0", spellcheck: "false", autocapitalize: "off", translate: "no" }),
        editing,
        // in a code editor Tab alone indents, so Escape and then Tab leaves the editor
        keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...completionKeymap, ...(isText ? [] : [indentWithTab])]),
      ],
    }),
  });
  return {
    setText(text) {
      if (text === view.state.doc.toString()) return;
      silent = true;
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text }, selection: { anchor: 0 }, scrollIntoView: true });
      view.dispatch(setDiagnostics(view.state, [])); // the diagnostics belonged to the earlier text
      silent = false;
    },
    setSyntax(syntax) {
      view.dispatch({ effects: syntaxPart.reconfigure(grammar(syntax)) });
    },
    setWrap(wrap) {
      view.dispatch({ effects: wrapPart.reconfigure(wrap || isText ? EditorView.lineWrapping : []) });
    },
    setMarks(marks) {
      view.dispatch(setDiagnostics(view.state, marks.map((mark) => diagnostic(view.state, mark))));
    },
    goTo(line, column) {
      const found = view.state.doc.line(Math.min(Math.max(line, 1), view.state.doc.lines));
      const at = Math.min(found.from + Math.max((column ?? 1) - 1, 0), found.to);
      view.dispatch({ selection: { anchor: at }, effects: EditorView.scrollIntoView(at, { y: "center" }) });
      view.focus();
    },
    focus: () => view.focus(),
    replace(text) {
      const solid = view.state.sliceDoc(0, view.state.selection.main.head).replace(/\s/g, "").length;
      let [at, passed] = [0, 0];
      for (; at < text.length && passed < solid; at += 1) if (/\S/.test(text[at]!)) passed += 1;
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text }, selection: { anchor: at }, scrollIntoView: true, userEvent: "input.format" });
    },
    destroy: () => view.destroy(),
  };
}

/** The range of a mark: from its column to the end of the word, or without a column the whole line except its indentation. */
function diagnostic(state: EditorState, mark: Mark): Diagnostic {
  const line = state.doc.line(Math.min(Math.max(mark.line, 1), state.doc.lines));
  const indent = line.text.length - line.text.trimStart().length;
  if (mark.column === null) return { from: line.from + indent, to: line.to, severity: mark.severity, message: mark.message };
  const from = Math.min(line.from + Math.max(mark.column - 1, 0), line.to);
  const word = state.wordAt(from);
  const to = word !== null && word.to > from ? word.to : Math.min(from + 1, line.to);
  return { from: from === to ? Math.max(line.from, from - 1) : from, to, severity: mark.severity, message: mark.message };
}
