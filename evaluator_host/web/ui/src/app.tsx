/** The frame around every page: header, key, and the page that belongs to the path. */
import { Component, type ComponentChildren, type ComponentType } from "preact";
import { lazily } from "./frame/lazily";
import { useEffect, useRef, useState } from "preact/hooks";
import { call } from "./api/http";
import type { HostInfo } from "./api/types";
import { ErrorNote } from "./components/error-note";
import { KeyDialog } from "./components/key-dialog";
import { Spinner } from "./components/spinner";
import { Toasts } from "./components/toasts";
import { isReachable, lostHost, onReachable } from "./api/reachable";
import { Header } from "./frame/header";
import { HostBanner } from "./frame/host-banner";
import { JobWatch } from "./frame/job-watch";
import { has, Host } from "./host";
import { decoded, match } from "./paths";
import { Link, usePlace } from "./router";
import { useAttention } from "./resources/attention";
import { NAVIGATION, ROUTES, SETUP, type PageProps, type Route } from "./routes";

export function App() {
  const place = usePlace();
  const found = resolve(place.path);
  const host = useInfo();
  const [over, setOver] = useState<"palette" | "help" | null>(null);
  useFrameKeys(setOver);
  return (
    <Host.Provider value={host}>
      <a class="skip-link" href="#main">
        Skip to content
      </a>
      <Header section={found?.route.section ?? ""} attention={useAttention(host)} onOpen={setOver} />
      <HostBanner />
      <main id="main" tabIndex={-1}>
        {found === null || !has(host, found.route.of) ? (
          <NotFound path={decoded(place.path)} />
        ) : (
          <Page key={found.route.path} route={found.route} params={found.params} query={place.query} />
        )}
      </main>
      {over === "palette" && <Palette onClose={() => setOver(null)} />}
      {over === "help" && <HelpMenu onClose={() => setOver(null)} />}
      <KeyDialog />
      <JobWatch />
      <Toasts />
    </Host.Provider>
  );
}

const Palette = lazily<{ onClose: () => void }>(() => import("./frame/palette"));
const HelpMenu = lazily<{ onClose: () => void }>(() => import("./frame/help-menu"));

/** Opens the palette on Ctrl+K or Cmd+K, and the help on a question mark outside fields. */
function useFrameKeys(open: (what: "palette" | "help") => void): void {
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (document.querySelector("dialog[open]") !== null) return;
      if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
        event.preventDefault();
        open("palette");
      } else if (event.key === "?" && !event.ctrlKey && !event.metaKey && !isWriting(event.target)) {
        event.preventDefault();
        open("help");
      }
    };
    document.addEventListener("keydown", onKeyDown, { capture: true });
    return () => document.removeEventListener("keydown", onKeyDown, { capture: true });
  }, []);
}

function isWriting(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || target.closest("input, textarea, select, [contenteditable]") !== null);
}

/** Loads the host's info. On a host with keys this first request asks for the key. */
function useInfo(): HostInfo | null {
  const [info, setInfo] = useState<HostInfo | null>(null);
  useEffect(() => {
    call<HostInfo>("GET", "/v1/info").then(setInfo, () => undefined); // the page that needs the info shows the error
  }, []);
  return info;
}

function resolve(path: string): { route: Route; params: Record<string, string> } | null {
  for (const route of ROUTES) {
    const params = match(route.path, path);
    if (params !== null) return { route, params };
  }
  return null;
}

function Page({ route, params, query }: PageProps & { route: Route }) {
  const [page, setPage] = useState<ComponentType<PageProps> | null>(null);
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    document.title = route.path === "/" ? "Evaluator Host" : `${route.title} · Evaluator Host`;
    route.load().then(
      (module) => setPage(() => module.default),
      () => {
        setFailed(true);
        lostHost();
      },
    );
  }, [route]);
  useEffect(() => (failed ? onReachable((reachable) => reachable && location.reload()) : undefined), [failed]);
  if (failed) return <ErrorNote title="The page could not be loaded" error={isReachable() ? "The host was updated: load the page again." : "The host is not responding. The page loads as soon as it is back; what you wrote is kept in this browser."} onRetry={() => location.reload()} />;
  if (page === null) return <Spinner label={`Loading ${route.title.toLowerCase()}`} page />;
  const Shown = page;
  return (
    <Boundary>
      <Focused key={JSON.stringify(params)} title={route.title}>
        <Shown params={params} query={query} />
      </Focused>
    </Boundary>
  );
}

let visited = false;

/** Announces the new page to screen readers. */
function Focused({ title, children }: { title: string; children: ComponentChildren }) {
  const place = useRef<HTMLParagraphElement>(null);
  useEffect(() => {
    if (visited) place.current?.focus({ preventScroll: true });
    visited = true;
  }, []);
  return (
    <>
      <p ref={place} class="visually-hidden" tabIndex={-1}>
        {title}
      </p>
      {children}
    </>
  );
}

class Boundary extends Component<{ children: ComponentChildren }, { error: unknown }> {
  override state = { error: null as unknown };

  static override getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    if (this.state.error === null) return this.props.children;
    return <ErrorNote title="Something went wrong on this page" error={this.state.error} />;
  }
}

/** Pages with a similar address, such as /jobs for /job. */
function alike(path: string): { to: string; label: string }[] {
  const first = path.split("/")[1]?.toLowerCase() ?? "";
  return [...NAVIGATION, ...SETUP].filter(({ to, label }) => first.length > 2 && [to.slice(1), label.toLowerCase()].some((one) => one.startsWith(first.slice(0, 4))));
}

function NotFound({ path }: { path: string }) {
  useEffect(() => void (document.title = "Page not found · Evaluator Host"), []);
  const meant = alike(path);
  return (
    <div class="page">
      <h1>Page not found</h1>
      <p class="muted">
        There is no page at <code>{path}</code>. {meant.length > 0 ? "Did you mean one of these?" : "The link may come from another version. These are all pages:"}
      </p>
      <p class="page-actions line">
        {(meant.length > 0 ? meant : [...NAVIGATION, ...SETUP]).map(({ to, label }) => (
          <Link key={to} to={to} class="button">
            {label}
          </Link>
        ))}
      </p>
    </div>
  );
}
