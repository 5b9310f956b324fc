import { useState } from "preact/hooks";
import { Button } from "../components/button";
import { ErrorNote } from "../components/error-note";
import { navigate } from "../router";
import { loadSamples } from "./sample-data";

/** Stores sample data and shows its jobs, so that everything can be tried in a minute. */
export function SampleButton({ onLoaded }: { onLoaded?: () => void }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const load = async () => {
    setBusy(true);
    setError(null);
    try {
      navigate(await loadSamples());
      onLoaded?.();
    } catch (fault) {
      setError(fault);
    }
    setBusy(false);
  };
  return (
    <>
      <Button busy={busy} onClick={() => void load()}>
        Load the sample data
      </Button>
      {error !== null && <ErrorNote error={error} />}
    </>
  );
}
