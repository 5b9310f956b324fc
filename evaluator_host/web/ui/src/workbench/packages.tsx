/** The packages of a draft: chips, a version menu, missing imports, and the progress of the installation. */
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { ApiError, call, isAbort } from "../api/http";
import { Button } from "../components/button";
import { ErrorNote } from "../components/error-note";
import type { CheckReport, Language, PackageVersions } from "../api/types";
import type { Build } from "./use-build";

interface PackagesProps {
  language: Language;
  packages: readonly string[];
  onPackages: (packages: string[]) => void;
  missing: CheckReport["missing_imports"];
  build: Build;
}

export function Packages({ language, packages, onPackages, missing, build }: PackagesProps) {
  const add = (pin: string) => onPackages([...packages.filter((other) => nameOf(other) !== nameOf(pin)), pin]);
  const suggested = missing.filter(({ pin, path }) => pin !== null && path === null && !packages.includes(pin));
  return (
    <section class="packages stack" aria-label="Packages">
      <div class="pins line">
        <span class="field-label" id="pins-label">
          Packages
        </span>
        <ul class="pin-list line" aria-labelledby="pins-label">
          {packages.map((pin) => (
            <li key={pin} class="chip pin">
              <span class="mono">{pin}</span>
              <button type="button" class="pin-remove" aria-label={`Remove ${pin}`} onClick={() => onPackages(packages.filter((other) => other !== pin))}>
                ×
              </button>
            </li>
          ))}
        </ul>
        <PinField language={language} onPin={add} />
      </div>
      {suggested.length > 0 && (
        <p class="line">
          <span class="muted">Imported, but not installed:</span>
          {suggested.map(({ module, pin }) => (
            <Button key={module} small onClick={() => pin !== null && add(pin)}>
              Add {pin}
            </Button>
          ))}
        </p>
      )}
      <Progress build={build} />
    </section>
  );
}

function nameOf(pin: string): string {
  return pin.split(/==|(?!^)@/)[0]?.toLowerCase() ?? pin;
}

const STEPS: Record<string, { label: string; from: number; to: number }> = {
  resolving: { label: "Resolving", from: 0, to: 15 },
  downloading: { label: "Downloading", from: 15, to: 60 },
  installing: { label: "Installing", from: 60, to: 80 },
  checking: { label: "Checking", from: 80, to: 98 },
  ready: { label: "Ready", from: 100, to: 100 },
};

function Progress({ build }: { build: Build }) {
  if (build.state === "none") return null;
  if (build.state === "failed") return <ErrorNote title="The packages were not installed" error={build.error} onRetry={build.retry} />;
  if (build.state === "ready") {
    const report = build.report;
    const others = (report?.packages.length ?? 0) - (report?.packages.filter((one) => one.requested).length ?? 0);
    return (
      <p class="build-done line" role="status">
        <span class="pass">✓ Installed</span>
        <span class="muted">
          {report?.runtime}
          {others > 0 ? ` · plus ${others} ${others === 1 ? "dependency" : "dependencies"}` : ""}
          {report?.build_s ? ` · built in ${report.build_s.toFixed(1)} s` : ""}
        </span>
        {report?.notes.map((note) => <span key={note} class="muted">{note}</span>)}
      </p>
    );
  }
  const step = STEPS[build.step?.step ?? "resolving"] ?? STEPS["resolving"]!;
  const share = build.step?.total ? build.step.done / build.step.total : 0;
  const percent = Math.round(step.from + (step.to - step.from) * share);
  const count = build.step?.total ? ` ${build.step.done} of ${build.step.total}` : "";
  return (
    <div class="build stack-tight">
      <div class="progress" role="progressbar" aria-label="Installing the packages" aria-valuenow={percent} aria-valuemin={0} aria-valuemax={100}>
        <div class="progress-bar" style={{ width: `${Math.max(percent, 3)}%` }} />
      </div>
      <p class="muted" role="status">
        {step.label}
        {count}…
      </p>
    </div>
  );
}

const PAUSE_MS = 250;
const MOST_SHOWN = 200;

/** A combobox for a package from the index: first its name, then a version. */
function PinField({ language, onPin }: { language: Language; onPin: (pin: string) => void }) {
  const [text, setText] = useState("");
  const [versions, setVersions] = useState<PackageVersions | null>(null);
  const [note, setNote] = useState("");
  const [open, setOpen] = useState(false);
  const [active, setActive] = useState(0);
  const list = useRef<HTMLUListElement>(null);
  const id = useId();
  const between = language === "python" ? "==" : "@";
  const { name, typed } = parts(text, between);

  useEffect(() => {
    setVersions(null);
    setNote("");
    if (name.length < 2) return;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      const path = `/v1/packages/${language === "python" ? "python" : "javascript"}/${encodeURIComponent(name)}/versions`;
      call<PackageVersions>("GET", path, { signal: abort.signal }).then(
        (found) => {
          setVersions(found);
          setActive(0);
        },
        (error: unknown) => {
          if (isAbort(error)) return;
          setNote(error instanceof ApiError && error.code === "not_found" ? `There is no package ${name}.` : error instanceof Error ? error.message : String(error));
        },
      );
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [name, language]);

  const shown = (versions?.versions ?? []).filter((version) => version.startsWith(typed)).slice(0, MOST_SHOWN);
  const expanded = open && shown.length > 0;
  const accept = (version: string | undefined) => {
    if (name === "") return;
    const chosen = version ?? (typed === "" ? undefined : typed);
    onPin(chosen === undefined ? text.trim() : `${versions?.name ?? name}${between}${chosen}`);
    setText("");
    setOpen(false);
  };
  const move = (by: number) => {
    const next = Math.min(Math.max(active + by, 0), shown.length - 1);
    setActive(next);
    list.current?.children[next]?.scrollIntoView({ block: "nearest" });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && !event.metaKey && !event.ctrlKey) {
      event.preventDefault();
      accept(expanded ? shown[active] : (shown[0] ?? undefined));
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (expanded) move(event.key === "ArrowDown" ? 1 : -1);
      else setOpen(true);
    } else if (event.key === "Escape") {
      setOpen(false);
    }
  };
  return (
    <div class="pin-field">
      <input
        class="input"
        role="combobox"
        aria-label="Add a package"
        aria-expanded={expanded}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        aria-activedescendant={expanded ? `${id}-${active}` : undefined}
        placeholder={language === "python" ? "Add: numpy" : "Add: lodash"}
        autocomplete="off"
        spellcheck={false}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setOpen(true);
        }}
        onKeyDown={onKeyDown}
        onBlur={() => setOpen(false)}
      />
      <ul ref={list} class="pin-options" id={`${id}-list`} role="listbox" aria-label={`Versions of ${name}`} hidden={!expanded}>
        {expanded &&
          shown.map((version, index) => (
            <li key={version} id={`${id}-${index}`} role="option" aria-selected={index === active} onMouseDown={(event) => (event.preventDefault(), accept(version))}>
              {version}
              {index === 0 && typed === "" && <span class="muted"> newest</span>}
            </li>
          ))}
      </ul>
      <span class={note ? "field-error" : "visually-hidden"} role="status">
        {note || (expanded ? `${shown.length} versions` : "")}
      </span>
    </div>
  );
}

/** Splits `numpy==2.1`, `lodash@4`, `@types/node@22` or a name alone into name and version. */
function parts(text: string, between: string): { name: string; typed: string } {
  const trimmed = text.trim();
  const at = trimmed.indexOf(between, 1);
  if (at < 0) return { name: trimmed.replace(/[=@]$/, ""), typed: "" };
  return { name: trimmed.slice(0, at).trim(), typed: trimmed.slice(at + between.length).trim() };
}
