// A chart over time, drawn by uPlot.

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { colour, theme } from "../theme";

export interface Line {
  label: string;
  /** Name of a CSS colour. */
  ink: string;
  /** Filled to the line below it: for counts that add up. */
  stacked?: boolean;
  /** An area with steps: a count of each step of time. */
  steps?: boolean;
  dash?: number[];
}

export interface ChartProps {
  label: string;
  lines: Line[];
  /** Unix seconds. */
  x: number[];
  /** One list of values a line. */
  values: (number | null)[][];
  height: number;
  text: (value: number) => string;
  /** The values are whole numbers: so are the marks of the axis. */
  whole?: boolean;
  /** The moment that is shown elsewhere on the page; a vertical line. */
  cursor?: number | undefined;
  onPick?: (x: number) => void;
}

/** The values of stacked lines are drawn as sums, the first line on top. */
function summed(lines: Line[], values: (number | null)[][]): (number | null)[][] {
  const sums = values.map((each) => [...each]);
  for (let line = lines.length - 2; line >= 0; line -= 1) {
    if (!lines[line]?.stacked) continue;
    sums[line] = (sums[line] ?? []).map((value, at) => (value ?? 0) + (sums[line + 1]?.[at] ?? 0));
  }
  return sums;
}

/** Bars from the time of a step to that of the next one; at least so wide that they are seen. */
const steps = uPlot.paths.bars?.({ align: 1, size: [1, Infinity, 2] });

const WHOLE = [1, 10, 100, 1e3, 1e4, 1e5, 1e6].flatMap((each) => [each, 2 * each, 5 * each]);

/** A few seconds do not fill the whole width. */
const SHORTEST_S = 60;

/** The times of the values; of steps, up to the end of the last one. */
function rangeOfTime({ lines, x }: ChartProps, first: number, last: number): [number, number] {
  const step = lines.some((each) => each.steps) ? (x[1] ?? 0) - (x[0] ?? 0) : 0;
  return [Math.min(first, last - SHORTEST_S), last + Math.max(0, step)];
}

/** A line of a few values has points: a value between two gaps is no line. */
const MOST_POINTS = 60;

function hasPoints(plot: uPlot, line: number): boolean {
  const known = Array.from(plot.data[line] ?? []).filter((each) => each != null);
  return known.length <= MOST_POINTS;
}

/** Times of day in UTC; with seconds where the ticks are closer than a minute. */
function timesOfDay(_: uPlot, ticks: number[], __: number, ___: number, step: number): string[] {
  return ticks.map((each) => new Date(each * 1000).toISOString().slice(11, step < 60 ? 19 : 16));
}

function options(newest: () => ChartProps, width: number): uPlot.Options {
  const props = newest();
  const axis = {
    stroke: colour("--muted"),
    font: '11.5px "Inter Variable", system-ui, sans-serif',
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { show: false },
  };
  return {
    width,
    height: props.height,
    tzDate: (ts) => uPlot.tzDate(new Date(ts * 1000), "Etc/UTC"),
    legend: { show: false },
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
    padding: [8, 8, 0, 0],
    scales: {
      x: { time: true, range: (_, first, last) => rangeOfTime(newest(), first, last) },
      y: { range: (_, __, most) => [0, most > 0 ? most * 1.08 : 1] },
    },
    axes: [
      { ...axis, grid: { show: false }, size: 26, space: 80, values: timesOfDay },
      { ...axis, size: 62, space: 32, values: (_, ticks) => ticks.map(props.text), ...(props.whole ? { incrs: WHOLE } : {}) },
    ],
    series: [
      {},
      ...props.lines.map((line) => ({
        label: line.label,
        stroke: line.steps ? "transparent" : colour(line.ink),
        width: line.steps ? 0 : 1.75,
        points: { show: line.steps ? false : hasPoints, size: 5 },
        spanGaps: !line.steps,
        ...(line.dash ? { dash: line.dash } : {}),
        ...(line.stacked || line.steps ? { fill: colour(line.ink) } : {}),
        ...(line.steps && steps ? { paths: steps } : {}),
      })),
    ],
    hooks: { draw: [(plot) => drawMoment(plot, newest().cursor)] },
  };
}

function drawMoment(plot: uPlot, moment: number | undefined): void {
  if (moment === undefined) return;
  const x = Math.round(plot.valToPos(moment, "x", true));
  plot.ctx.save();
  plot.ctx.strokeStyle = colour("--text");
  plot.ctx.lineWidth = 2;
  plot.ctx.setLineDash([]);
  plot.ctx.beginPath();
  plot.ctx.moveTo(x, plot.bbox.top);
  plot.ctx.lineTo(x, plot.bbox.top + plot.bbox.height);
  plot.ctx.stroke();
  plot.ctx.restore();
}

export function Chart(props: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const newest = useRef(props);
  newest.current = props;
  const data = (): uPlot.AlignedData =>
    [newest.current.x, ...summed(newest.current.lines, newest.current.values)] as uPlot.AlignedData;
  useEffect(() => {
    const element = place.current;
    if (!element) return undefined;
    const drawn = new uPlot(
      options(() => newest.current, Math.max(120, element.clientWidth)),
      data(),
      element,
    );
    plot.current = drawn;
    const watch = new ResizeObserver(() => {
      drawn.setSize({ width: Math.max(120, element.clientWidth), height: newest.current.height });
    });
    watch.observe(element);
    drawn.over.addEventListener("click", () => {
      const { left } = drawn.cursor;
      if (left !== undefined && left >= 0) newest.current.onPick?.(drawn.posToVal(left, "x"));
    });
    return () => {
      watch.disconnect();
      drawn.destroy();
      plot.current = null;
    };
  }, [theme.value, props.height, props.lines.length]);
  useEffect(() => plot.current?.setData(data()), [props.x, props.values]);
  useEffect(() => plot.current?.redraw(false, false), [props.cursor]);
  return (
    <figure class="chart">
      <figcaption>
        <span>{props.label}</span>
        <span class="keys">
          {props.lines.map((line) => (
            <span class="key" key={line.label}>
              <i style={{ background: `var(${line.ink})` }} />
              {line.label}
            </span>
          ))}
        </span>
      </figcaption>
      <div ref={place} role="img" aria-label={`${props.label}: ${summary(props)}`} />
    </figure>
  );
}

/** The newest values in words, for those who do not see the chart. */
function summary(props: ChartProps): string {
  const last = props.x.length - 1;
  if (last < 0) return "no values yet";
  return props.lines
    .map((line, index) => {
      const value = props.values[index]?.[last];
      return `${line.label} ${value === null || value === undefined ? "none" : props.text(value)}`;
    })
    .join(", ");
}
