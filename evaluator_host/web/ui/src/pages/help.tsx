/** The documentation inside the workbench: a list of its pages, and each page. */
import { type ComponentChild, h } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { DOCS, type DocNode, type DocPage, loadDoc } from "docs:all";
import { Empty } from "../components/empty";
import { Field } from "../components/field";
import { Spinner } from "../components/spinner";
import { useLoaded } from "../components/use-loaded";
import { useDocs } from "../resources/known-docs";
import { PageHead } from "../resources/parts";
import { Link } from "../router";
import type { PageProps } from "../routes";

export default function HelpPage({ params }: PageProps) {
  const id = [params["folder"], params["page"]].filter(Boolean).join("/");
  const page = useDocs().find((one) => one.id === id);
  return (
    <div class="page help">
      <PageHead title={page?.title ?? (id === "" ? "Help" : "Page not found")} {...(id === "" ? {} : { up: { to: "/help", label: "Help" } })} />
      <div class="help-grid">
        <Contents id={id} />
        {page === undefined ? id === "" ? <Overview /> : <Empty title={`There is no page ${id}`} /> : <Doc key={id} page={page} />}
      </div>
    </div>
  );
}

function Contents({ id }: { id: string }) {
  const pages = useDocs();
  const [text, setText] = useState("");
  const words = text.trim().toLowerCase();
  const shown = useMemo(() => pages.map((page) => ({ page, headings: words === "" ? [] : page.headings.filter(({ title }) => title.toLowerCase().includes(words)) })).filter(({ page, headings }) => words === "" || headings.length > 0 || page.title.toLowerCase().includes(words)), [pages, words]);
  return (
    <nav class="help-contents stack" aria-label="Pages of the documentation">
      <Field label="Find in the headings" bare type="search" placeholder="Find…" value={text} onValue={setText} />
      {words !== "" && shown.length === 0 && <Empty title={`No heading has “${text.trim()}”`} />}
      {sectionsOf(shown.map(({ page }) => page)).map((section) => (
        <section key={section}>
          <h2>{section}</h2>
          <ul>{shown.filter(({ page }) => page.section === section).map((one) => <Entry key={one.page.id} {...one} id={id} />)}</ul>
        </section>
      ))}
    </nav>
  );
}

/** An entry of the contents: a page, with its headings that match a search. */
function Entry({ page, headings, id }: { page: DocPage; headings: DocPage["headings"]; id: string }) {
  return (
    <li>
      <Link to={`/help/${page.id}`} aria-current={page.id === id ? "page" : undefined}>
        {page.title}
      </Link>
      {headings.length > 0 && (
        <ul>
          {headings.slice(0, 6).map((one) => (
            <li key={one.id}>
              <Link to={`/help/${page.id}#${one.id}`}>{one.title}</Link>
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}

const sectionsOf = (pages: readonly DocPage[]) => [...new Set(pages.map(({ section }) => section))];
const FIRST = ["first-job", "workbench", "contracts", "packages", "jobs"];

/** The whole sentences of a text, except those that end in a colon and introduce something else. */
function firstSentences(text: string): string {
  return (text.match(/.*?[.!?](?=\s|$)/g) ?? [text]).slice(0, 2).join("").trim();
}

function Overview() {
  return (
    <article class="doc stack">
      <h2>Read first</h2>
      <ol>
        {FIRST.flatMap((id) => DOCS.filter((page) => page.id === id)).map((page) => (
          <li key={page.id}>
            <Link to={`/help/${page.id}`}>{page.title}</Link>
            <p class="muted">{firstSentences(page.summary)}</p>
          </li>
        ))}
      </ol>
      <p>
        Read and try the <a href="/docs">HTTP API</a>.
      </p>
    </article>
  );
}

function Doc({ page }: { page: DocPage }) {
  const found = useLoaded(() => loadDoc(page.id), [page.id]);
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = () => setHash(location.hash);
    changed();
    addEventListener("hashchange", changed);
    addEventListener("popstate", changed);
    return () => {
      removeEventListener("hashchange", changed);
      removeEventListener("popstate", changed);
    };
  });
  useEffect(() => {
    if (found.value !== null && hash.length > 1) document.getElementById(decodeURIComponent(hash.slice(1)))?.scrollIntoView();
  }, [found.value, hash]);
  if (found.value === null) return <Spinner label="Loading the page" />;
  return <article class="doc stack">{found.value.map(shown)}</article>;
}

const TAGS = new Set(["p", "h2", "h3", "h4", "ul", "ol", "li", "pre", "code", "strong", "em", "del", "table", "thead", "tbody", "tr", "th", "td", "blockquote", "hr", "br"]);

/** A node of a page: a string, a link, or one of the few elements that pages use. */
function shown(node: DocNode, key = 0): ComponentChild {
  if (typeof node === "string") return node;
  const [tag, attributes, ...children] = node;
  const inner = children.map(shown);
  if (tag === "a") return link(attributes?.["href"] ?? "", inner, key);
  if (!TAGS.has(tag)) return <span key={key}>{inner}</span>;
  if (tag === "pre") return h("pre", { key, class: "output", tabIndex: 0 }, inner);
  if (tag === "table") return h("div", { key, class: "table-scroll", tabIndex: 0, role: "group", "aria-label": "Table" }, h("table", { class: "table" }, inner));
  return h(tag, { key, ...(attributes?.["id"] ? { id: attributes["id"] } : {}) }, inner);
}

function link(href: string, inner: ComponentChild[], key: number): ComponentChild {
  if (href.startsWith("/help")) {
    return (
      <Link key={key} to={href}>
        {inner}
      </Link>
    );
  }
  if (href.startsWith("#")) return h("a", { key, href }, inner);
  if (/^https?:/.test(href)) return h("a", { key, href, rel: "noreferrer" }, inner);
  return <span key={key}>{inner}</span>;
}
