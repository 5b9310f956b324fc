/** Draws plots with the parts of Chart.js that they need. Loaded only with `import()`. */
import { BarController, BarElement, BubbleController, Chart, LinearScale, CategoryScale, LineController, LineElement, PointElement, Tooltip, type ChartConfiguration, type ChartOptions } from "chart.js";
import { colour } from "../theme";
import { count as shownCount, rounded } from "./format";

Chart.register(BarController, BarElement, BubbleController, LineController, LineElement, PointElement, LinearScale, CategoryScale, Tooltip);

export interface HistogramDrawing {
  kind: "histogram";
  bins: readonly { lower_bound: number; upper_bound: number; count: number }[];
  x: string;
  y: string;
}

export interface ScatterDrawing {
  kind: "scatter";
  points: readonly { before: number; after: number; count: number }[];
  x: string;
  y: string;
}

/** Values in the order of time, with a line for each of `lines`; lines with the same label have the same colour. */
export interface TrendDrawing {
  kind: "trend";
  labels: readonly string[];
  lines: readonly { label: string; values: readonly (number | null)[] }[];
  y: string;
}

export type Drawing = HistogramDrawing | ScatterDrawing | TrendDrawing;

export interface Drawn {
  picture(): Promise<Blob>;
  destroy(): void;
}

const SMALLEST_PX = 4;
const GREATEST_PX = 15;

/** Draw on a canvas; `onPick` gets the number of a clicked bar or point. */
export function draw(canvas: HTMLCanvasElement, drawing: Drawing, onPick: (index: number) => void): Drawn {
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const config = drawing.kind === "histogram" ? histogram(drawing) : drawing.kind === "scatter" ? scatter(drawing) : trend(drawing);
  const options: ChartOptions = {
    ...config.options,
    responsive: true,
    maintainAspectRatio: false,
    animation: still ? false : { duration: 200 },
    onClick: (_, found) => {
      const first = found[found.length - 1];
      if (first !== undefined && (drawing.kind !== "scatter" || first.datasetIndex === 0)) onPick(first.index);
    },
    onHover: (_, found) => {
      canvas.style.cursor = found.length > 0 ? "pointer" : "";
    },
  };
  const chart = new Chart(canvas, { ...config, options } as ChartConfiguration);
  return { picture: () => picture(canvas), destroy: () => chart.destroy() };
}

function histogram({ bins, x, y }: HistogramDrawing): ChartConfiguration {
  const labels = bins.map((bin) => (bin.lower_bound === bin.upper_bound ? rounded(bin.lower_bound) : `${rounded(bin.lower_bound)} – ${rounded(bin.upper_bound)}`));
  const tooltip = { callbacks: { label: (item: { parsed: { y: number | null } }) => ` ${shownCount(item.parsed.y ?? 0)} rows` } };
  return {
    type: "bar",
    data: { labels, datasets: [{ data: bins.map((bin) => bin.count), backgroundColor: colour("--plot-1"), hoverBackgroundColor: colour("--accent-strong"), borderRadius: 3, categoryPercentage: 1, barPercentage: 0.92, maxBarThickness: 120 }] },
    options: { scales: { x: axis(x, false), y: { ...axis(y, true), beginAtZero: true } }, plugins: { tooltip: { ...tooltipColours(), ...tooltip } } },
  } as ChartConfiguration;
}

function trend({ labels, lines, y }: TrendDrawing): ChartConfiguration {
  const inks = [colour("--plot-1"), colour("--pass"), colour("--warn"), colour("--info"), colour("--fail")];
  const labelled = [...new Set(lines.map(({ label }) => label))];
  const inkOf = (label: string) => inks[labelled.indexOf(label) % inks.length];
  const datasets = lines.map(({ label, values }) => ({ label, data: [...values], spanGaps: true, borderColor: inkOf(label), backgroundColor: inkOf(label), borderWidth: 2, pointRadius: 4, pointHitRadius: 12 }));
  const tooltip = { callbacks: { label: (item: { datasetIndex: number; parsed: { y: number | null } }) => ` ${lines[item.datasetIndex]?.label ?? ""}: ${rounded(item.parsed.y)}` } };
  return {
    type: "line",
    data: { labels: [...labels], datasets },
    options: { interaction: { mode: "nearest", intersect: false }, scales: { x: axis("", false), y: axis(y, true) }, plugins: { tooltip: { ...tooltipColours(), ...tooltip } } },
  } as ChartConfiguration;
}

function scatter({ points, x, y }: ScatterDrawing): ChartConfiguration {
  const most = Math.max(1, ...points.map((point) => point.count));
  const radius = (many: number) => (most === 1 ? SMALLEST_PX : SMALLEST_PX + (GREATEST_PX - SMALLEST_PX) * Math.sqrt((many - 1) / most));
  const [better, worse, same] = [colour("--pass"), colour("--fail"), colour("--plot-1")];
  const colours = points.map(({ before, after }) => (after > before ? better : after < before ? worse : same));
  const values = points.flatMap(({ before, after }) => [before, after]);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const margin = (high - low || 1) * 0.06;
  const ends = { min: low - margin, max: high + margin };
  const label = (item: { dataIndex: number; datasetIndex: number }) => {
    const point = item.datasetIndex === 0 ? points[item.dataIndex] : undefined;
    return point ? ` ${rounded(point.before)} → ${rounded(point.after)}: ${shownCount(point.count)} ${point.count === 1 ? "row" : "rows"}` : "";
  };
  return {
    type: "bubble",
    data: {
      datasets: [
        { data: points.map(({ before, after, count }) => ({ x: before, y: after, r: radius(count) })), backgroundColor: colours.map((one) => one.replace(")", ", 0.6)")), borderColor: colours, borderWidth: 1, clip: false },
        { type: "line", data: [{ x: ends.min, y: ends.min }, { x: ends.max, y: ends.max }], borderColor: colour("--border-strong"), borderWidth: 1, borderDash: [4, 4], pointRadius: 0, pointHitRadius: 0 },
      ],
    },
    options: {
      scales: { x: { ...axis(x, true), ...ends }, y: { ...axis(y, true), ...ends } },
      plugins: { tooltip: { ...tooltipColours(), callbacks: { label }, filter: (item: { datasetIndex: number }) => item.datasetIndex === 0 } },
    },
  } as ChartConfiguration;
}

function axis(title: string, grid: boolean) {
  const ink = colour("--muted");
  const ticks = { color: ink, font: { size: 11 }, maxRotation: 0, autoSkip: true, includeBounds: false };
  return { title: { display: true, text: title, color: ink, font: { size: 12 } }, ticks, grid: { display: grid, color: colour("--plot-grid") }, border: { color: colour("--plot-grid") } };
}

function tooltipColours() {
  return { backgroundColor: colour("--text"), titleColor: colour("--bg"), bodyColor: colour("--bg"), displayColors: false, padding: 8, cornerRadius: 5 };
}

/** The canvas as a picture with the page's background, because a transparent one is hard to read elsewhere. */
function picture(canvas: HTMLCanvasElement): Promise<Blob> {
  const copy = document.createElement("canvas");
  copy.width = canvas.width;
  copy.height = canvas.height;
  const pen = copy.getContext("2d")!;
  pen.fillStyle = colour("--surface");
  pen.fillRect(0, 0, copy.width, copy.height);
  pen.drawImage(canvas, 0, 0);
  return new Promise((resolve, reject) => copy.toBlob((blob) => (blob === null ? reject(new Error("The browser could not create the picture.")) : resolve(blob))));
}
