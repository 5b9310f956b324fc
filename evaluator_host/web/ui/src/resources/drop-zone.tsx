import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";

/** The handlers of an element that accepts dropped files, even over an editor in it, and whether files are dragged over it. */
export function useDrop(take: (transfer: DataTransfer) => void) {
  const [above, setAbove] = useState(false);
  const depth = useRef(0); // entering a child fires another `dragenter` event
  const carriesFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
  const enter = (event: DragEvent) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    depth.current += 1;
    setAbove(true);
  };
  const leave = () => {
    depth.current = Math.max(0, depth.current - 1);
    if (depth.current === 0) setAbove(false);
  };
  const drop = (event: DragEvent) => {
    if (!carriesFiles(event) || event.dataTransfer === null) return;
    event.preventDefault();
    event.stopPropagation();
    depth.current = 0;
    setAbove(false);
    take(event.dataTransfer);
  };
  const over = (event: DragEvent) => carriesFiles(event) && event.preventDefault();
  return { above, on: { onDragEnter: enter, onDragOver: over, onDragLeave: leave, onDropCapture: drop } };
}

/** A cover over an area while files are dragged over it. */
export function DropHint({ children }: { children: ComponentChildren }) {
  return (
    <p class="drop-hint" aria-hidden="true">
      {children}
    </p>
  );
}

/** An area that accepts dropped files; it shows a hint while a file is dragged over it. */
export function DropZone({ onFiles, children }: { onFiles: (files: readonly File[]) => void; children: ComponentChildren }) {
  const { above, on } = useDrop((transfer) => onFiles([...transfer.files]));
  return (
    <div class={above ? "drop-zone drop-above" : "drop-zone"} {...on}>
      {children}
      {above && <DropHint>Drop to upload</DropHint>}
    </div>
  );
}

/** Let the user choose files of some kinds, or a folder; returns an empty list if nothing is chosen. */
export function pickFiles({ accept = ".jsonl,.ndjson,.csv,.tsv,.txt,.json,.xlsx,.parquet", several = false, folder = false } = {}): Promise<readonly File[]> {
  const input = document.createElement("input");
  input.type = "file";
  input.accept = accept;
  input.multiple = several;
  input.webkitdirectory = folder;
  return new Promise((resolve) => {
    input.addEventListener("change", () => resolve([...(input.files ?? [])]));
    input.addEventListener("cancel", () => resolve([]));
    input.click();
  });
}
