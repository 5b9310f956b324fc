/** The frame around every page: header, navigation, theme, key, and the page that belongs to the path. */
import { Component, type ComponentChildren, type ComponentType } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { call } from "./api/http";
import type { HostInfo } from "./api/types";
import { ErrorNote } from "./components/error-note";
import { KeyDialog } from "./components/key-dialog";
import { Spinner } from "./components/spinner";
import { Toasts } from "./components/toasts";
import { Host } from "./host";
import { Link, match, usePlace } from "./router";
import { NAVIGATION, ROUTES, type PageProps, type Route } from "./routes";
import { chooseTheme, useTheme } from "./theme";

export function App() {
  const place = usePlace();
  const found = resolve(place.path);
  const host = useInfo();
  return (
    <Host.Provider value={host}>
      <a class="skip-link" href="#main">
        Skip to content
      </a>
      <Header section={found?.route.section ?? ""} />
      <main id="main" tabIndex={-1}>
        {found === null ? (
          <NotFound path={place.path} />
        ) : (
          <Page key={found.route.path} route={found.route} params={found.params} query={place.query} />
        )}
      </main>
      <KeyDialog />
      <Toasts />
    </Host.Provider>
  );
}

/** Loads the host's info. On a host with keys this first request asks for the key. */
function useInfo(): HostInfo | null {
  const [info, setInfo] = useState<HostInfo | null>(null);
  useEffect(() => {
    call<HostInfo>("GET", "/v1/info").then(setInfo, () => undefined); // the page that needs it says what went wrong
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

function Header({ section }: { section: string }) {
  return (
    <header class="frame-header">
      <Link to="/" class="brand" aria-label="Evaluator Host, to the workbench">
        <svg class="brand-mark" viewBox="0 0 32 32" aria-hidden="true">
          <rect width="32" height="32" rx="8" class="brand-tile" />
          <path d="M9 21V11h9M9 16h7" class="brand-letter" />
          <path d="m16.500 20.500 2.600 2.500 5-5.500" class="brand-tick" />
        </svg>
        <span class="brand-name">Evaluator Host</span>
      </Link>
      <Navigation section={section} />
      <ThemeSwitch />
    </header>
  );
}

/** The pages. Where there is no room for all of them it scrolls, fading out on the sides on which there is more. */
function Navigation({ section }: { section: string }) {
  const nav = useRef<HTMLElement>(null);
  useEffect(() => {
    const shown = nav.current;
    if (shown === null) return;
    const fade = () => {
      shown.toggleAttribute("data-more-before", shown.scrollLeft > 1);
      shown.toggleAttribute("data-more-after", shown.scrollLeft + shown.clientWidth < shown.scrollWidth - 1);
    };
    const watcher = new ResizeObserver(fade);
    watcher.observe(shown);
    shown.addEventListener("scroll", fade, { passive: true });
    return () => {
      watcher.disconnect();
      shown.removeEventListener("scroll", fade);
    };
  }, []);
  useEffect(() => {
    const shown = nav.current;
    const lit = shown?.querySelector<HTMLElement>("[aria-current]");
    if (shown && lit) shown.scrollLeft = lit.offsetLeft - (shown.clientWidth - lit.offsetWidth) / 2;
  }, [section]);
  return (
    <nav ref={nav} class="frame-nav" aria-label="Main">
      {NAVIGATION.map(({ to, label }) => (
        <Link key={to} to={to} aria-current={to === section ? "page" : undefined}>
          {label}
        </Link>
      ))}
    </nav>
  );
}

function ThemeSwitch() {
  const theme = useTheme();
  const other = theme === "dark" ? "light" : "dark";
  return (
    <button class="icon-button" type="button" aria-label={`Use the ${other} theme`} title={`Use the ${other} theme`} onClick={() => chooseTheme(other)}>
      <svg viewBox="0 0 24 24" aria-hidden="true" class="icon">
        {theme === "dark" ? (
          <path d="M12 4V2m0 20v-2m8-8h2M2 12h2m13.700-5.700 1.400-1.400M4.900 19.100l1.400-1.400m0-11.400L4.900 4.900m14.200 14.200-1.400-1.400M16 12a4 4 0 1 1-8 0 4 4 0 0 1 8 0Z" />
        ) : (
          <path d="M20 14.500A8.500 8.500 0 0 1 9.500 4 8.500 8.500 0 1 0 20 14.500Z" />
        )}
      </svg>
    </button>
  );
}

function Page({ route, params, query }: PageProps & { route: Route }) {
  const [page, setPage] = useState<ComponentType<PageProps> | null>(null);
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    document.title = route.path === "/" ? "Evaluator Host" : `${route.title} · Evaluator Host`;
    route.load().then(
      (module) => setPage(() => module.default),
      () => setFailed(true),
    );
  }, [route]);
  if (failed) return <ErrorNote title="The page could not be loaded" error="The host is not responding, or it was updated. Reload the page." />;
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

function NotFound({ path }: { path: string }) {
  return (
    <div class="page">
      <h1>Page not found</h1>
      <p class="muted">
        There is no page at <code>{path}</code>. <Link to="/">Go to the workbench</Link>
      </p>
    </div>
  );
}
