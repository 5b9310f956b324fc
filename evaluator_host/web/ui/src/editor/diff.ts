/** Two texts side by side, with their differences marked. Loaded only with `import()`. */
import { MergeView, unifiedMergeView } from "@codemirror/merge";
import { EditorState, type Extension } from "@codemirror/state";
import { EditorView, lineNumbers } from "@codemirror/view";
import { everyEditor, type Syntax } from "./mirror";

export interface DiffOptions {
  parent: HTMLElement;
  before: string;
  after: string;
  syntax: Syntax;
  labels: readonly [string, string];
  /** Whether the texts are one below the other, for a narrow space. */
  unified: boolean;
}

/** Show a diff; the returned function removes it. */
export function openDiff({ parent, before, after, syntax, labels, unified }: DiffOptions): () => void {
  const fixed = (label: string): Extension => [
    lineNumbers(),
    EditorView.lineWrapping,
    EditorState.readOnly.of(true),
    EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0", translate: "no" }),
    everyEditor(syntax),
  ];
  if (unified) {
    const view = new EditorView({ parent, doc: after, extensions: [fixed(labels[1]), unifiedMergeView({ original: before, mergeControls: false })] });
    return () => view.destroy();
  }
  const view = new MergeView({
    parent,
    a: { doc: before, extensions: fixed(labels[0]) },
    b: { doc: after, extensions: fixed(labels[1]) },
    gutter: true,
    collapseUnchanged: { margin: 6, minSize: 8 },
  });
  return () => view.destroy();
}
