import { useId } from "preact/hooks";
import { Button } from "../components/button";

interface Line {
  field: string;
  source: string;
}

interface MappingProps {
  mapping: readonly Line[];
  columns: readonly string[];
  onMapping: (mapping: readonly Line[]) => void;
}

const FIELDS = ["outputs", "correct_answer", "inputs", "trace", "variables", "messages", "inputs.", "variables."];

/** The mapping: each row field and the column or template that fills it. */
export function MappingFields({ mapping, columns, onMapping }: MappingProps) {
  const id = useId();
  const set = (at: number, changes: Partial<Line>) => onMapping(mapping.map((line, index) => (index === at ? { ...line, ...changes } : line)));
  const add = () => onMapping([...mapping, { field: mapping.some((line) => line.field === "outputs") ? "correct_answer" : "outputs", source: "" }]);
  return (
    <div class="record-stack">
      <p class="muted">
        Without a mapping, every column is an input and the column <code>outputs</code> or <code>output</code> is the output. A source is a column name, a dotted path or a template: <code>{"{{ first }} {{ last }}"}</code>.
      </p>
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
    </div>
  );
}
