/** The documentation, made from docs/*.md by docs-plugin.mjs. */
declare module "docs:all" {
  /** A string, or an element: its tag, its attributes, its children. */
  export type DocNode = string | [string, Record<string, string> | null, ...DocNode[]];

  export interface DocPage {
    /** The path below docs/, without its suffix. */
    id: string;
    /** Section in the table of contents, docs/README.md. */
    section: string;
    title: string;
    summary: string;
    headings: readonly { id: string; title: string }[];
  }

  export const DOCS: readonly DocPage[];
  export function loadDoc(id: string): Promise<DocNode[]>;
}
