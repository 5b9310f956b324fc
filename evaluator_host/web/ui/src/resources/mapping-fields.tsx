import { useId } from "preact/hooks";
import { Button } from "../components/button";
import { lacksOutputs, unmapped, type MappingLine, type Read } from "./mapping-advice";

interface MappingProps {
  mapping: readonly MappingLine[];
  columns: readonly string[];
  /** Inputs that the evaluators read. */
  reads: readonly Read[];
  /** Whether the lines come from the names of the columns. */
  isSuggested: boolean;
  /** Whether an evaluator reads the outputs, and no model writes them. */
  outputs: boolean;
  onMapping: (mapping: readonly MappingLine[]) => void;
}

const FIELDS = ["outputs", "correct_answer", "inputs", "trace", "variables", "messages", "inputs.", "variables."];

/** The mapping: each row field and the column or template that fills it. */
export function MappingFields({ mapping, columns, reads, isSuggested, outputs, onMapping }: MappingProps) {
  const id = useId();
  const set = (at: number, changes: Partial<MappingLine>) => onMapping(mapping.map((line, index) => (index === at ? { ...line, ...changes } : line)));
  const add = () => onMapping([...mapping, { field: mapping.some((line) => line.field === "outputs") ? "correct_answer" : "outputs", source: "" }]);
  return (
    <div class="stack">
      <p class="muted">
        Without a mapping, every column is an input, and the column <code>outputs</code> or <code>output</code> is also the output. A source is a column name, a dotted path or a template: <code>{"{{ first }} {{ last }}"}</code>.
      </p>
      {isSuggested && mapping.length > 0 && <p>Suggested by the columns; change what does not fit.</p>}
      {mapping.map((line, at) => (
        <div key={at} class="mapping-line">
          <input class="input mono" aria-label={`Field ${at + 1}`} list={`${id}-fields`} value={line.field} spellcheck={false} placeholder="outputs" onInput={(event) => set(at, { field: event.currentTarget.value })} />
          <span aria-hidden="true">←</span>
          <input class="input mono" aria-label={`Source of field ${at + 1}`} list={`${id}-columns`} value={line.source} spellcheck={false} placeholder="a column or {{ template }}" onInput={(event) => set(at, { source: event.currentTarget.value })} />
          <Button kind="quiet" small aria-label={`Remove field ${at + 1}`} onClick={() => onMapping(mapping.filter((_, index) => index !== at))}>
            Remove
          </Button>
        </div>
      ))}
      <datalist id={`${id}-fields`}>
        {FIELDS.map((field) => (
          <option key={field} value={field} />
        ))}
      </datalist>
      <datalist id={`${id}-columns`}>
        {columns.map((column) => (
          <option key={column} value={column} />
        ))}
      </datalist>
      <div>
        <Button small onClick={add}>
          Map a field
        </Button>
      </div>
      <Missing reads={unmapped(columns, reads, mapping)} outputs={outputs && lacksOutputs(columns, mapping)} onMap={(field) => onMapping([...mapping, { field, source: "" }])} />
    </div>
  );
}

/** The inputs that no column fills, each with a button that adds a line. */
function Missing({ reads, outputs, onMap }: { reads: readonly Read[]; outputs: boolean; onMap: (field: string) => void }) {
  if (reads.length === 0 && !outputs) return null;
  return (
    <ul class="note note-warn mapping-missing" aria-label="Missing columns">
      {outputs && (
        <li>
          No column contains the outputs, so the rows have none.{" "}
          <button type="button" class="link-button" onClick={() => onMap("outputs")}>
            Map outputs
          </button>
        </li>
      )}
      {reads.map(({ evaluator, name }) => (
        <li key={`${evaluator} ${name}`}>
          {evaluator} reads <code>{name}</code>, but no column contains it.{" "}
          <button type="button" class="link-button" onClick={() => onMap(name === "correct_answer" ? name : `inputs.${name}`)}>
            Map {name}
          </button>
        </li>
      ))}
    </ul>
  );
}
