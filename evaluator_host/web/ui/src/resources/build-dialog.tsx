import { useState } from "preact/hooks";
import { call } from "../api/http";
import { Button } from "../components/button";
import { Dialog } from "../components/dialog";
import { ErrorNote } from "../components/error-note";
import { Labelled, Select } from "../components/field";
import { PythonSelect } from "../components/python-select";
import { useAction } from "../components/use-action";
import { navigate } from "../router";
import type { EnvironmentReport, Language } from "../api/types";

const LANGUAGES = [
  { value: "python", label: "Python (pip)" },
  { value: "javascript", label: "JavaScript and TypeScript (npm)" },
];

/** Asks for exact pins, and lets the host install them. */
export function BuildDialog({ onClose, onAsked }: { onClose: () => void; onAsked: () => void }) {
  const [language, setLanguage] = useState<Language>("python");
  const [python, setPython] = useState<string | null>(null);
  const [text, setText] = useState("");
  const { busy, error, run } = useAction();
  const packages = text.split(/[\n,]+/).map((pin) => pin.trim()).filter(Boolean);
  const build = () =>
    run(async () => {
      const report = await call<EnvironmentReport>("POST", "/v1/environments", { body: { language, packages, python: language === "python" ? python : null } });
      onAsked();
      navigate(`/environments/${encodeURIComponent(report.key)}`);
    });
  return (
    <Dialog
      title="Install packages"
      onClose={onClose}
      onSubmit={() => packages.length > 0 && void build()}
      actions={
        <Button kind="primary" type="submit" busy={busy} disabled={packages.length === 0}>
          Install
        </Button>
      }
    >
      <Select label="Language" value={language} onValue={(value) => setLanguage(value as Language)} options={LANGUAGES} />
      {language === "python" && <PythonSelect value={python} onValue={setPython} />}
      <Labelled label="Packages, one per line" hint={language === "python" ? "Exact versions: numpy==2.1.0" : "Exact versions: lodash@4.17.21"}>
        {({ id, describedBy }) => (
          <textarea id={id} class="input mono" rows={6} spellcheck={false} aria-describedby={describedBy} value={text} onInput={(event) => setText(event.currentTarget.value)} />
        )}
      </Labelled>
      {error !== null && <ErrorNote error={error} />}
    </Dialog>
  );
}
