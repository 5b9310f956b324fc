// The documentation as pages of the workbench: `docs:all` lists them, `docs:page/ID` is one page as a tree of elements.
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { marked } from "marked";
import path from "node:path";

const FOLDER = new URL("../../../docs/", import.meta.url);
export const docs = {
  name: "docs",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^docs:/ }, ({ path }) => ({ path, namespace: "docs" }));
    onLoad({ filter: /^docs:all$/, namespace: "docs" }, async () => {
      const ids = await allIds();
      const sections = await tableOfContents();
      const pages = await Promise.all(ids.map(async (id) => ({ id, section: sections.get(id) ?? "", ...(await summaryOf(id)) })));
      const loaders = ids.map((id) => `${JSON.stringify(id)}: () => import(${JSON.stringify(`docs:page/${id}`)})`);
      const contents = `export const DOCS = ${JSON.stringify(pages)};\nconst LOADERS = {${loaders.join(",")}};\nexport const loadDoc = (id) => LOADERS[id]().then((module) => module.default);`;
      return { contents, loader: "js" };
    });
    onLoad({ filter: /^docs:page\//, namespace: "docs" }, async ({ path }) => {
      const id = path.slice("docs:page/".length);
      const known = new Set(await allIds());
      return { contents: JSON.stringify(nodes(marked.lexer(await text(id)), (href) => resolved(href, id, known))), loader: "json" };
    });
  },
};

async function allIds() {
  return existsSync(FOLDER) ? [...(await tableOfContents()).keys()] : [];
}

/** The section of each page, in the order of the table of contents, README.md. */
async function tableOfContents() {
  const found = new Map();
  let section = "";
  for (const token of marked.lexer(await text("README"))) {
    if (token.type === "heading" && token.depth === 2) section = plain(token.text);
    for (const href of hrefs(token)) if (/^[\w/-]+\.md$/.test(href)) found.set(href.slice(0, -3), section);
  }
  return found;
}

const hrefs = (token) => [...(token.type === "link" ? [token.href] : []), ...[...(token.tokens ?? []), ...(token.items ?? [])].flatMap(hrefs)];

const text = (id) => readFile(new URL(`${id}.md`, FOLDER), "utf8");

async function summaryOf(id) {
  const tokens = marked.lexer(await text(id));
  const headings = tokens.filter(({ type }) => type === "heading");
  const title = headings.find(({ depth }) => depth === 1)?.text ?? id;
  const summary = plainText(tokens.find(({ type }) => type === "paragraph")?.tokens ?? []);
  return { title: plain(title), summary, headings: headings.filter(({ depth }) => depth === 2 || depth === 3).map((one) => ({ id: slug(one.text), title: plain(one.text) })) };
}

const plain = (markdown) => markdown.replace(/[`*]/g, "").replace(/\[([^\]]*)\]\([^)]*\)/g, "$1");
const plainText = (tokens) => tokens.map((one) => (one.tokens ? plainText(one.tokens) : (one.text ?? ""))).join("").replace(/\s+/g, " ");
const slug = (title) => plain(title).toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, "").trim().replaceAll(/\s/g, "-");

/** The address in the workbench of a link within the documentation; null for any other link. */
function resolved(href, id, known) {
  if (/^https?:/.test(href) || href.startsWith("#")) return href;
  const [file, hash] = href.split("#");
  const target = path.posix.normalize(path.posix.join(path.posix.dirname(id), file)).replace(/\.md$/, "");
  if (target === "README") return "/help";
  return known.has(target) ? `/help/${target}${hash === undefined ? "" : `#${hash}`}` : null;
}

const INLINE = { strong: "strong", em: "em", del: "del", blockquote: "blockquote" };

function nodes(tokens, resolve) {
  return tokens.flatMap((token) => node(token, resolve));
}

function node(token, resolve) {
  const inner = () => nodes(token.tokens ?? [], resolve);
  switch (token.type) {
    case "heading":
      return token.depth === 1 ? [] : [[`h${Math.min(token.depth, 4)}`, { id: slug(token.text) }, ...inner()]];
    case "paragraph":
      return [["p", null, ...inner()]];
    case "text":
      return token.tokens ? inner() : [token.text];
    case "escape":
      return [token.text];
    case "codespan":
      return [["code", null, token.text]];
    case "code":
      return [["pre", null, ["code", null, token.text]]];
    case "br":
    case "hr":
      return [[token.type, null]];
    case "link": {
      const href = resolve(token.href);
      return href === null ? inner() : [["a", { href }, ...inner()]];
    }
    case "list":
      return [[token.ordered ? "ol" : "ul", null, ...token.items.map((item) => ["li", null, ...nodes(item.tokens, resolve)])]];
    case "table": {
      const row = (cells, tag) => ["tr", null, ...cells.map((cell) => [tag, null, ...nodes(cell.tokens, resolve)])];
      return [["table", null, ["thead", null, row(token.header, "th")], ["tbody", null, ...token.rows.map((cells) => row(cells, "td"))]]];
    }
    default:
      return token.type in INLINE ? [[INLINE[token.type], null, ...inner()]] : [];
  }
}
