import { Button } from "./button";
import { toast } from "./toasts";

/** A button that copies the string that `text` returns; `text` is called on click. */
export function CopyButton({ label, text, said }: { label: string; text: () => string; said?: string }) {
  const copy = async () => {
    toast((await copyText(text())) ? (said ?? "Copied") : "The browser does not let this page copy. Select the text and copy it yourself.");
  };
  return (
    <Button kind="quiet" small onClick={() => void copy()}>
      {label}
    </Button>
  );
}

/** Put a string on the clipboard; return whether the browser allowed it. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copiedTheOldWay(text); // a page that is served by plain HTTP has no clipboard
  }
}

function copiedTheOldWay(text: string): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "visually-hidden";
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}
