/** The help menu: the documentation inside the workbench, the API, sample data, and the keys. */
import { useState } from "preact/hooks";
import { Button } from "../components/button";
import { Dialog } from "../components/dialog";
import { ErrorNote } from "../components/error-note";
import { useHost } from "../host";
import { loadSamples } from "../resources/sample-data";
import { Link, navigate } from "../router";

const PAGES = [
  { id: "workbench", label: "Workbench: what each page does" },
  { id: "contracts", label: "Contracts: how code is called, what it may return" },
  { id: "packages", label: "Packages: pip and npm" },
  { id: "jobs", label: "Jobs, data sets, live traces" },
  { id: "models", label: "Ask LLMs from an evaluator" },
  { id: "troubleshooting", label: "Fix an error" },
  { id: "cli", label: "Command line" },
] as const;

export const KEYS: readonly (readonly [string, string])[] = [
  ["Ctrl K", "find anything: pages, evaluators, data sets, jobs, help"],
  ["Ctrl Enter", "run the evaluator on the test row"],
  ["Ctrl Space", "complete"],
  ["Alt Z", "wrap long lines in the editor"],
  ["Esc, Tab", "leave the editor"],
  ["j, k", "next and previous row of a job"],
  ["?", "this help"],
];

export default function HelpMenu({ onClose }: { onClose: () => void }) {
  const host = useHost();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const samples = async () => {
    setBusy(true);
    try {
      navigate(await loadSamples());
      onClose();
    } catch (fault) {
      setError(fault);
      setBusy(false);
    }
  };
  return (
    <Dialog title="Help" onClose={onClose} wide>
      <div class="help-columns">
        <section>
          <h3>Documentation</h3>
          <ul class="choices">
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
          <p class="muted">A data set of 24 questions, two evaluators, and a job of each: enough to see jobs and a comparison.</p>
          <Button busy={busy} onClick={() => void samples()}>
            Load the sample data
          </Button>
          {error !== null && <ErrorNote error={error} />}
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
