/** The gallery of evaluators to start from: found by words, by language and by platform. */
import type { Example } from "examples:all";
import { useState } from "preact/hooks";
import { Dialog } from "../components/dialog";
import { Empty } from "../components/empty";
import { Field } from "../components/field";
import { LANGUAGES } from "../page-words";
import { Segments } from "../resources/parts";
import type { Language } from "../api/types";

const GROUPS = [
  { value: "all", label: "All" },
  { value: "own", label: "Start here" },
  { value: "platform", label: "From other platforms" },
] as const;

export function Gallery({ examples, chosen, onExample, onClose }: { examples: readonly Example[]; chosen: string | null; onExample: (example: Example) => void; onClose: () => void }) {
  const [text, setText] = useState("");
  const [group, setGroup] = useState<"all" | "own" | "platform">("all");
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = examples.filter((one) => {
    const all = `${one.title} ${one.description} ${one.contract ?? ""} ${Object.keys(one.programs).join(" ")}`.toLowerCase();
    return words.every((word) => all.includes(word)) && (group === "all" || (group === "platform") === (one.contract !== undefined));
  });
  const first = shown[0];
  return (
    <Dialog title="Examples" onClose={onClose} onSubmit={() => first !== undefined && words.length > 0 && onExample(first)} wide>
      <div class="gallery-head line">
        <Field label="Find an example" bare type="search" placeholder={`Find in ${examples.length} examples…`} value={text} onValue={setText} autocomplete="off" />
        <Segments label="Which examples" value={group} options={GROUPS} onValue={setGroup} />
      </div>
      {shown.length === 0 && <Empty title={`No example has “${text.trim()}”`} />}
      <ul class="gallery">
        {shown.map((one) => (
          <li key={one.id}>
            <button type="button" class="gallery-card stack-tight" aria-current={one.id === chosen ? "true" : undefined} onClick={() => onExample(one)}>
              <strong>{one.title}</strong>
              <span class="gallery-text">{one.description}</span>
              <span class="muted">
                {(Object.keys(one.programs) as Language[]).map((language) => LANGUAGES[language]).join(", ")}
                {one.contract !== undefined && ` · ${one.contract}`}
              </span>
            </button>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
