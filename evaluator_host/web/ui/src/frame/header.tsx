/** The header of every page: navigation, Find, help, alerts, set-up, theme. */
import { useEffect, useRef } from "preact/hooks";
import { Menu, MenuLink } from "../components/menu";
import { useHas } from "../host";
import { attentionInWords, type Attention } from "../resources/attention";
import { Link } from "../router";
import { NAVIGATION, SETUP } from "../routes";
import { chooseTheme, useTheme } from "../theme";
import { Brand } from "./shell";

export function Header({ section, attention, onOpen }: { section: string; attention: Attention; onOpen: (what: "palette" | "help") => void }) {
  return (
    <header class="frame-header">
      <Link to="/" class="brand" aria-label="Evaluator Host, to the workbench">
        <Brand />
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

/** The links to the pages; they scroll if there is not enough room, and fade out on each side where there are more. */
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

/** Link to the firing alerts, or to the schedules whose last run created no job, with their number. */
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

/** A menu of the pages for things that are set up once. */
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
