/** Plots: drawn on a canvas when Chart.js has loaded, described in a sentence and as a table, saved as PNG or CSV. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { saveAs } from "../api/http";
import { Button } from "../components/button";
import { Table } from "../components/table";
import { useTheme } from "../theme";
import { csv } from "./csv";
import { rounded } from "./format";
import type { Drawn, Drawing } from "./plot-canvas";

type Cell = string | number | null;

interface PlotProps {
  /** Name of the saved files. */
  name: string;
  /** Description of the plot in a sentence, for screen readers. */
  summary: string;
  drawing: Drawing;
  header: readonly string[];
  rows: readonly (readonly Cell[])[];
  onRow?: (index: number) => void;
  children?: ComponentChildren;
}

const ROWS_SHOWN = 100;

/** A plot. `rows` are its data; `onRow` gets the index of the row that the user clicked. */
export function Plot({ name, summary, drawing, header, rows, onRow, children }: PlotProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const drawn = useRef<Drawn | null>(null);
  const [failed, setFailed] = useState(false);
  const theme = useTheme();
  const pick = useRef(onRow);
  pick.current = onRow;
  useEffect(() => {
    let gone = false;
    import("./plot-canvas").then(
      ({ draw }) => {
        if (gone || canvas.current === null) return;
        drawn.current = draw(canvas.current, drawing, (index) => pick.current?.(index));
        canvas.current.dataset["drawn"] = "true";
      },
      () => setFailed(true),
    );
    return () => {
      gone = true;
      drawn.current?.destroy();
      drawn.current = null;
    };
  }, [drawing, theme]);
  return (
    <figure class={`plot plot-${drawing.kind}`}>
      <div class="plot-place">
        <canvas ref={canvas} role="img" aria-label={summary} />
      </div>
      {failed && <p class="muted">The plot could not be loaded. Its data is below.</p>}
      <figcaption class="plot-foot">
        <span class="plot-note small">{children}</span>
        <Button kind="quiet" small aria-label={`${name}: save as PNG`} onClick={() => void drawn.current?.picture().then((picture) => saveAs(picture, `${name}.png`))}>
          PNG
        </Button>
        <Button kind="quiet" small aria-label={`${name}: save as CSV`} onClick={() => saveAs(csv(header, rows), `${name}.csv`)}>
          CSV
        </Button>
      </figcaption>
      <details class="plot-data">
        <summary>Data as a table</summary>
        <Table label={`Data: ${summary}`} head={[...header, ...(onRow ? ["show"] : [])].map((one) => <th key={one} class="number" scope="col">{one}</th>)}>
          {rows.slice(0, ROWS_SHOWN).map((cells, index) => (
            <tr key={index}>
              {cells.map((one, at) => (
                <td key={at} class="number">
                  {typeof one === "number" ? rounded(one) : one}
                </td>
              ))}
              {onRow && (
                <td class="number">
                  <button type="button" class="link-button" aria-label={`Show line ${index + 1}`} onClick={() => onRow(index)}>
                    show
                  </button>
                </td>
              )}
            </tr>
          ))}
        </Table>
        {rows.length > ROWS_SHOWN && <p class="muted">Only the first {ROWS_SHOWN} are shown. The CSV has all {rows.length}.</p>}
      </details>
    </figure>
  );
}
