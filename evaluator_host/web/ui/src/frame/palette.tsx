/** The command palette: finds pages, actions, stored objects, jobs, examples and documentation by a few letters. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { call } from "../api/http";
import type { DatasetReport, EvaluatorReport, JobReport } from "../api/types";
import { useLoaded } from "../components/use-loaded";
import { counted, oneLine, shortId } from "../resources/format";
import { useHas } from "../host";
import { useDocs } from "../resources/known-docs";
import { navigate } from "../router";
import { NAVIGATION, SETUP } from "../routes";
import { chooseTheme, currentTheme } from "../theme";
import type { DocPage } from "docs:all";

interface Command {
  kind: string;
  name: string;
  more?: string;
  run: () => void;
}

const MOST = 60;

function actions(alerts: boolean): Command[] {
  const other = currentTheme() === "dark" ? "light" : "dark";
  return [
    { kind: "Action", name: "Start a job", run: () => navigate("/jobs/new") },
    { kind: "Action", name: "Upload a data set", run: () => navigate("/datasets") },
    { kind: "Action", name: "Install packages", run: () => navigate("/environments?new=1") },
    { kind: "Action", name: `Use the ${other} theme`, run: () => chooseTheme(other) },
    { kind: "Action", name: "Copy the link to this page", run: () => void navigator.clipboard?.writeText(location.href) },
    ...(alerts ? [{ kind: "Page", name: "Alerts", run: () => navigate("/schedules?show=alerts") }] : []),
    { kind: "Page", name: "HTTP API", run: () => location.assign("/docs") },
  ];
}

async function stored(signal: AbortSignal): Promise<Command[]> {
  const none = () => [];
  const [evaluators, datasets, jobs] = await Promise.all([
    call<EvaluatorReport[]>("GET", "/v1/evaluators", { signal }).catch(none),
    call<DatasetReport[]>("GET", "/v1/datasets", { signal }).catch(none),
    call<JobReport[]>("GET", "/v1/jobs", { signal, query: { limit: 100 } }).catch(none),
  ]);
  return [
    ...evaluators.map((one): Command => ({ kind: "Evaluator", name: one.name, more: one.description, run: () => navigate(`/evaluators/${encodeURIComponent(one.name)}`) })),
    ...evaluators.map((one): Command => ({ kind: "Open in the workbench", name: one.name, run: () => navigate(`/?evaluator=${encodeURIComponent(one.name)}`) })),
    ...datasets.map((one): Command => ({ kind: "Data set", name: one.name, more: counted(one.rows, "row"), run: () => navigate(`/datasets/${encodeURIComponent(one.name)}`) })),
    ...jobs.map((one): Command => ({ kind: "Job", name: one.title, more: `${one.status} · ${shortId(one.id)}`, run: () => navigate(`/jobs/${one.id}`) })),
  ];
}

function documentation(pages: readonly DocPage[]): Command[] {
  return pages.flatMap((page) => [
    { kind: "Help", name: page.title, run: () => navigate(`/help/${page.id}`) },
    ...page.headings.map((one): Command => ({ kind: "Help", name: one.title, more: page.title, run: () => navigate(`/help/${page.id}#${one.id}`) })),
  ]);
}

/** How well a command matches the typed words; 0 if one of them is missing. */
function fit(command: Command, words: readonly string[]): number {
  const name = command.name.toLowerCase();
  const all = `${name} ${command.kind} ${command.more ?? ""}`.toLowerCase();
  let sum = command.kind === "Help" ? 0 : 4; // pages and actions come before pages of help
  for (const word of words) {
    if (!all.includes(word)) return 0;
    sum += name.startsWith(word) ? 6 : new RegExp(`\\b${word.replace(/[^\w]/g, "\\$&")}`).test(name) ? 4 : name.includes(word) ? 3 : 1;
  }
  return sum;
}

export default function Palette({ onClose }: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const kept = useLoaded(stored, []);
  const has = useHas();
  const pages = useDocs();
  const known = useMemo<Command[]>(() => [...[...NAVIGATION, ...SETUP].filter(({ of }) => has(...(of ?? []))).map(({ to, label }) => ({ kind: "Page", name: label, run: () => navigate(to) })), ...actions(has("alerts")), ...(kept.value ?? []), ...documentation(pages)], [kept.value, pages]);
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = useMemo(() => {
    if (words.length === 0) return known.filter(({ kind }) => kind !== "Help" && kind !== "Open in the workbench").slice(0, MOST);
    return known
      .map((command) => ({ command, score: fit(command, words) }))
      .filter(({ score }) => score > 0)
      .sort((one, other) => other.score - one.score)
      .slice(0, MOST)
      .map(({ command }) => command);
  }, [known, text]);
  useEffect(() => {
    dialog.current?.showModal();
    return () => dialog.current?.close();
  }, []);
  useEffect(() => setAt(0), [text]);
  useEffect(() => dialog.current?.querySelector(`#command-${at}`)?.scrollIntoView({ block: "nearest" }), [at]);
  const run = (command: Command | undefined) => {
    if (command === undefined) return;
    onClose();
    command.run();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) {
      event.preventDefault();
      setAt((before) => (shown.length === 0 ? 0 : (before + step + shown.length) % shown.length));
    }
    if (event.key === "Enter") {
      event.preventDefault();
      run(shown[at]);
    }
  };
  return (
    <dialog
      ref={dialog}
      class="dialog palette"
      aria-label="Commands"
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onMouseDown={(event) => event.target === dialog.current && onClose()}
    >
      <div class="palette-body stack">
        <input class="input" role="combobox" aria-label="Find a page, an evaluator, a job or help" aria-expanded="true" aria-controls="commands" aria-activedescendant={shown.length > 0 ? `command-${at}` : undefined} aria-autocomplete="list" placeholder="Find anything…" autocomplete="off" spellcheck={false} value={text} onInput={(event) => setText(event.currentTarget.value)} onKeyDown={onKeyDown} />
        <ul id="commands" class="palette-list" role="listbox" aria-label="Commands">
          {shown.map((command, index) => (
            <li key={`${command.kind} ${command.name} ${command.more ?? ""} ${index}`} id={`command-${index}`} role="option" aria-selected={index === at} onMouseMove={() => setAt(index)} onClick={() => run(command)}>
              <span class="palette-kind small">{command.kind}</span>
              <span>{oneLine(command.name, 80)}</span>
              {command.more && <span class="cut small">{oneLine(command.more, 80)}</span>}
            </li>
          ))}
        </ul>
        {shown.length === 0 && <p class="muted palette-none">{kept.loading ? "Loading…" : "Nothing was found by that name."}</p>}
      </div>
    </dialog>
  );
}
