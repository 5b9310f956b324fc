import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { Link } from "../router";

interface MenuProps {
  label: string;
  /** Icon in place of the label, which then only screen readers get. */
  icon?: ComponentChildren;
  lit?: boolean;
  children: ComponentChildren;
}

/** A button that opens further actions: `MenuItem`, `MenuLink`, `MenuLine`. Arrow keys go through them, Escape closes. */
export function Menu({ label, icon, lit = false, children }: MenuProps) {
  const place = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const id = useId();
  const [open, setOpen] = useState(false);
  const items = () => [...(place.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
  useEffect(() => {
    if (!open) return undefined;
    const list = place.current?.querySelector<HTMLElement>(".menu-list");
    list?.classList.toggle("menu-from-left", (list.getBoundingClientRect().left ?? 0) < 0);
    items()[0]?.focus();
    const onPointerDown = (event: PointerEvent) => {
      if (!place.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener("pointerdown", onPointerDown);
    return () => document.removeEventListener("pointerdown", onPointerDown);
  }, [open]);
  const onKeyDown = (event: KeyboardEvent) => {
    const all = items();
    const at = all.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: (at + 1) % all.length, ArrowUp: (at - 1 + all.length) % all.length, Home: 0, End: all.length - 1 }[event.key];
    if (event.key === "Escape" && open) {
      setOpen(false);
      button.current?.focus();
    } else if (event.key === "Tab") setOpen(false);
    else if (event.key === "ArrowDown" && !open) setOpen(true);
    else if (to !== undefined && open) all[to]?.focus();
    else return;
    if (event.key !== "Tab") event.preventDefault();
  };
  return (
    <div class="menu" ref={place} onKeyDown={onKeyDown}>
      <button ref={button} id={id} type="button" class={icon === undefined ? "button button-plain" : `icon-button ${lit ? "icon-button-lit" : ""}`} aria-label={icon === undefined ? undefined : label} title={icon === undefined ? undefined : label} aria-haspopup="menu" aria-expanded={open} onClick={() => setOpen(!open)}>
        {icon ?? (
          <>
            {label}
            <svg viewBox="0 0 12 12" class="menu-arrow" aria-hidden="true">
              <path d="m2.500 4.500 3.500 3.500 3.500-3.500" />
            </svg>
          </>
        )}
      </button>
      {open && (
        <div class="menu-list stack" role="menu" aria-labelledby={id} onClick={() => setOpen(false)}>
          {children}
        </div>
      )}
    </div>
  );
}

export function MenuItem({ danger = false, onClick, children }: { danger?: boolean; onClick: () => void; children: ComponentChildren }) {
  return (
    <button type="button" role="menuitem" tabIndex={-1} class={danger ? "menu-danger" : ""} onClick={onClick}>
      {children}
    </button>
  );
}

export function MenuLink({ to, children }: { to: string; children: ComponentChildren }) {
  return (
    <Link to={to} role="menuitem" tabIndex={-1}>
      {children}
    </Link>
  );
}

export function MenuLine() {
  return <hr role="separator" />;
}
