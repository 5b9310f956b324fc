/** The frame around every page: header, navigation, theme, key, and the page that belongs to the path. */
import { Component, type ComponentChildren, type ComponentType } from "preact";
import { lazily } from "./frame/lazily";
import { useEffect, useRef, useState } from "preact/hooks";
import { call } from "./api/http";
import type { HostInfo } from "./api/types";
import { ErrorNote } from "./components/error-note";
import { KeyDialog } from "./components/key-dialog";
import { Menu, MenuLink } from "./components/menu";
import { Spinner } from "./components/spinner";
import { Toasts } from "./components/toasts";
import { isReachable, lostHost, onReachable } from "./api/reachable";
import { HostBanner } from "./frame/host-banner";
import { JobWatch } from "./frame/job-watch";
import { has, Host, useHas } from "./host";
import { decoded, Link, match, usePlace } from "./router";
import { attentionInWords, useAttention, type Attention } from "./resources/attention";
import { NAVIGATION, ROUTES, SETUP, type PageProps, type Route } from "./routes";
import { chooseTheme, useTheme } from "./theme";

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

/** Ctrl+K, Cmd+K for the palette; a question mark, outside of fields, for help. */
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

function Header({ section, attention, onOpen }: { section: string; attention: Attention; onOpen: (what: "palette" | "help") => void }) {
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
      <button class="button button-small find-button" type="button" title="Ctrl+K" onClick={() => onOpen("palette")}>
        Find <kbd>Ctrl K</kbd>
      </button>
      <button class="icon-button" type="button" aria-label="Help" title="Help (?)" onClick={() => onOpen("help")}>
        <svg viewBox="0 0 24 24" aria-hidden="true" class="icon">
          <path d="M9.300 9a2.800 2.800 0 1 1 4.100 2.500c-1 .5-1.400 1.100-1.400 2.200M12 17.200v.1M21 12a9 9 0 1 1-18 0 9 9 0 0 1 18 0Z" />
        </svg>
      </button>
      <Bell attention={attention} />
      <Gear section={section} />
      <ThemeSwitch />
    </header>
  );
}

/** The pages. Where there is no room for all of them it scrolls, fading out on the sides on which there is more. */
function Navigation({ section }: { section: string }) {
  const has = useHas();
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
      {NAVIGATION.filter(({ of }) => has(...(of ?? []))).map(({ to, label }) => (
        <Link key={to} to={to} aria-current={to === section ? "page" : undefined}>
          {label}
        </Link>
      ))}
    </nav>
  );
}

/** Leads to the alerts that fire, or to the schedules that made no job, and says how many there are. */
function Bell({ attention }: { attention: Attention }) {
  const has = useHas();
  if (!has("alerts", "schedules")) return null;
  const many = attention.firing + attention.missed;
  const words = many === 0 ? "Alerts" : attentionInWords(attention);
  return (
    <Link to={!has("alerts") || (attention.firing === 0 && attention.missed > 0) ? "/schedules" : "/schedules?show=alerts"} class="icon-button" title={words}>
      <span class="visually-hidden">{words}</span>
      <svg viewBox="0 0 24 24" aria-hidden="true" class="icon">
        <path d="M6 10a6 6 0 1 1 12 0c0 5 2 6 2 7H4c0-1 2-2 2-7M10 20a2 2 0 0 0 4 0" />
      </svg>
      {many > 0 && (
        <span class="nav-badge" aria-hidden="true">
          {many}
        </span>
      )}
    </Link>
  );
}

/** The pages for what is set up once. */
function Gear({ section }: { section: string }) {
  const has = useHas();
  return (
    <Menu
      label="Set up"
      lit={SETUP.some(({ to }) => to === section)}
      icon={
        <svg viewBox="0 0 24 24" aria-hidden="true" class="icon">
          <path d="M4 7h10m4 0h2M4 17h2m4 0h10M14 7a2 2 0 1 0 4 0 2 2 0 1 0-4 0M6 17a2 2 0 1 0 4 0 2 2 0 1 0-4 0" />
        </svg>
      }
    >
      {SETUP.filter(({ of }) => has(...(of ?? []))).map(({ to, label }) => (
        <MenuLink key={to} to={to}>
          {label}
        </MenuLink>
      ))}
    </Menu>
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

/** Pages whose address begins like this one, such as /jobs for /job. */
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
      <p class="page-actions">
        {(meant.length > 0 ? meant : NAVIGATION).map(({ to, label }) => (
          <Link key={to} to={to} class="button">
            {label}
          </Link>
        ))}
      </p>
    </div>
  );
}
