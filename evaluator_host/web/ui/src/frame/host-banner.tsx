import { useEffect, useState } from "preact/hooks";
import { askHost, isReachable, onReachable } from "../api/reachable";
import { Button } from "../components/button";

/** A banner above every page while the host does not answer. */
export function HostBanner() {
  const [reachable, setReachable] = useState(isReachable);
  useEffect(() => onReachable(setReachable), []);
  if (reachable) return null;
  return (
    <div class="host-banner line" role="alert">
      <span>The host is not responding. This page tries again every few seconds; what you write is kept in this browser.</span>
      <Button small onClick={askHost}>
        Try now
      </Button>
    </div>
  );
}
