import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";

/** An area that accepts dropped files; it shows a hint while a file is dragged over it. */
export function DropZone({ onFiles, children }: { onFiles: (files: readonly File[]) => void; children: ComponentChildren }) {
  const [above, setAbove] = useState(false);
  const depth = useRef(0); // every child that is entered is another enter
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
    if (!carriesFiles(event)) return;
    event.preventDefault();
    depth.current = 0;
    setAbove(false);
    onFiles([...(event.dataTransfer?.files ?? [])]);
  };
  return (
    <div class={above ? "drop-zone drop-above" : "drop-zone"} onDragEnter={enter} onDragOver={(event) => carriesFiles(event) && event.preventDefault()} onDragLeave={leave} onDrop={drop}>
      {children}
      {above && (
        <p class="drop-hint" aria-hidden="true">
          Drop to upload
        </p>
      )}
    </div>
  );
}

/** Ask the user for files; none when they choose none. */
export function pickFiles(): Promise<readonly File[]> {
  const input = document.createElement("input");
  input.type = "file";
  input.accept = ".jsonl,.ndjson,.csv,.tsv,.txt,.json,.xlsx,.parquet";
  return new Promise((resolve) => {
    input.addEventListener("change", () => resolve([...(input.files ?? [])]));
    input.addEventListener("cancel", () => resolve([]));
    input.click();
  });
}
