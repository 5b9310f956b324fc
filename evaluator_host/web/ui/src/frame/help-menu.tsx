/** The help menu: the documentation inside the workbench, the API, sample data, and the keys. */
import { Dialog } from "../components/dialog";
import { useHost } from "../host";
import { SampleButton } from "../resources/sample-button";
import { Link } from "../router";

const PAGES = [
  { id: "workbench", label: "Workbench: what each page does" },
  { id: "contracts", label: "Contracts: how code is called, what it may return" },
  { id: "packages", label: "Packages: pip and npm" },
  { id: "jobs", label: "Jobs, data sets, live traces" },
  { id: "models", label: "Call LLMs from an evaluator" },
  { id: "troubleshooting", label: "Fix an error" },
  { id: "cli", label: "Command line" },
] as const;

const KEYS: readonly (readonly [string, string])[] = [
  ["Ctrl K", "find anything: pages, evaluators, data sets, jobs, help"],
  ["Ctrl Enter", "run the evaluator on the test row"],
  ["Ctrl Space", "complete"],
  ["Shift Alt F", "format the code"],
  ["Alt Z", "wrap long lines in the editor"],
  ["Esc, Tab", "leave the editor"],
  ["j, k", "next and previous row of a job, or of a label queue"],
  ["1, 2, …, s, u", "in a label queue: label, skip, undo"],
  ["?", "this help"],
];

export default function HelpMenu({ onClose }: { onClose: () => void }) {
  const host = useHost();
  return (
    <Dialog title="Help" onClose={onClose} wide>
      <div class="help-columns">
        <section>
          <h3>Documentation</h3>
          <ul class="choices stack-tight">
            {PAGES.map(({ id, label }) => (
              <li key={id} onClick={onClose}>
                <Link to={`/help/${id}`}>{label}</Link>
              </li>
            ))}
            <li onClick={onClose}>
              <Link to="/help">All pages</Link>
            </li>
            <li>
              <a href="/docs">HTTP API</a>
            </li>
          </ul>
        </section>
        <section>
          <h3>Keys</h3>
          <dl class="help-keys">
            {KEYS.map(([key, does]) => (
              <div key={key}>
                <dt>
                  <kbd>{key}</kbd>
                </dt>
                <dd>{does}</dd>
              </div>
            ))}
          </dl>
          <h3>Try it</h3>
          <p class="muted">A data set of 24 questions, two evaluators, and a job for each: enough to try jobs and a comparison.</p>
          <SampleButton onLoaded={onClose} />
        </section>
      </div>
      {host !== null && (
        <p class="muted">
          Evaluator Host {host.version}, sandbox {host.backend}, times in {Intl.DateTimeFormat().resolvedOptions().timeZone}
        </p>
      )}
    </Dialog>
  );
}
