import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import { Prose } from "./prose";

interface Around {
  label: string;
  hint?: string | undefined;
  /** Message about an invalid value. */
  error?: string | null | undefined;
  /** Whether only screen readers get the label. */
  bare?: boolean | undefined;
}

/** A label, its control, a hint and an error, linked by ids for screen readers. `children` gets the ids to use. */
export function Labelled({ label, hint, error, bare = false, children }: Around & { children: (ids: { id: string; describedBy: string | undefined; invalid: boolean }) => ComponentChildren }) {
  const id = useId();
  const described = [hint ? `${id}-hint` : "", error ? `${id}-error` : ""].filter(Boolean).join(" ");
  return (
    <div class="field stack-tight">
      <label class={bare ? "visually-hidden" : "field-label"} for={id}>
        {label}
      </label>
      {children({ id, describedBy: described || undefined, invalid: Boolean(error) })}
      {hint && (
        <p class="field-hint small" id={`${id}-hint`}>
          <Prose text={hint} />
        </p>
      )}
      {error && (
        <p class="field-error" id={`${id}-error`}>
          {error}
        </p>
      )}
    </div>
  );
}

interface FieldProps extends Around {
  value: string;
  onValue: (value: string) => void;
  type?: "text" | "number" | "search" | "password" | "time";
  min?: number;
  max?: number;
  step?: number | "any";
  placeholder?: string;
  title?: string;
  autocomplete?: "off";
  spellcheck?: boolean;
  disabled?: boolean;
  maxlength?: number;
}

/** A line of text, or a number. */
export function Field({ label, hint, error, bare, value, onValue, type = "text", ...rest }: FieldProps) {
  return (
    <Labelled label={label} hint={hint} error={error} bare={bare}>
      {({ id, describedBy, invalid }) => (
        <input {...rest} type={type as "text"} class="input" id={id} value={value} aria-describedby={describedBy} aria-invalid={invalid || undefined} onInput={(event) => onValue(event.currentTarget.value)} />
      )}
    </Labelled>
  );
}

/** The number in a field; null if the field is empty. */
export function typedNumber(text: string): number | null {
  return text.trim() === "" ? null : Number(text);
}

interface TextAreaProps extends Around {
  value: string;
  onValue: (value: string) => void;
  rows?: number;
  class?: string;
}

/** Text of several lines. */
export function TextArea({ label, hint, error, bare, value, onValue, rows = 2, class: given = "" }: TextAreaProps) {
  return (
    <Labelled label={label} hint={hint} error={error} bare={bare}>
      {({ id, describedBy, invalid }) => <textarea id={id} class={`input ${given}`} rows={rows} spellcheck={false} aria-describedby={describedBy} aria-invalid={invalid || undefined} value={value} onInput={(event) => onValue(event.currentTarget.value)} />}
    </Labelled>
  );
}

interface SelectProps extends Around {
  value: string;
  onValue: (value: string) => void;
  options: readonly { value: string; label: string }[];
  disabled?: boolean;
}

/** A menu of a few options. */
export function Select({ label, hint, error, bare, value, onValue, options, disabled }: SelectProps) {
  return (
    <Labelled label={label} hint={hint} error={error} bare={bare}>
      {({ id, describedBy, invalid }) => (
        <select class="input" id={id} value={value} disabled={disabled} aria-describedby={describedBy} aria-invalid={invalid || undefined} onChange={(event) => onValue(event.currentTarget.value)}>
          {options.map((option) => (
            <option key={option.value} value={option.value}>
              {option.label}
            </option>
          ))}
        </select>
      )}
    </Labelled>
  );
}
