import { useHost } from "../host";
import { Select } from "./field";

/** A menu for the Python version; hidden when the host has only one. */
export function PythonSelect({ value, onValue }: { value: string | null; onValue: (value: string | null) => void }) {
  const host = useHost();
  const own = /\d+\.\d+/.exec(host?.runtimes["python"] ?? "")?.[0];
  const others = [...new Set([...(host?.pythons ?? []).filter((minor) => minor !== own), ...(value === null ? [] : [value])])];
  if (others.length === 0) return null;
  const options = [{ value: "", label: own === undefined ? "Default" : `Default (${own})` }, ...others.map((minor) => ({ value: minor, label: minor }))];
  return <Select label="Python" hint="Packages are installed for this version." value={value ?? ""} options={options} onValue={(minor) => onValue(minor || null)} />;
}
