// The map of the nodes: a canvas, and one button that moves from cell to cell for the keyboard.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Cluster } from "../server/answers";
import { colour, theme } from "../theme";
import type { Coloured, Palette } from "./colouring";
import {
  cellAt,
  COMPACT,
  layOut,
  ROOMY,
  spotBeside,
  spotUnder,
  type Group,
  type Layout,
  type Spot,
} from "./layout";
import { paint, type Cell, type Inks } from "./painter";

const KEYS = "ArrowLeft ArrowRight ArrowUp ArrowDown Home End PageUp PageDown".split(" ");

/** Name of the User Timing measure of each drawing. */
export const DRAW_MEASURE = "stowage-map-draw";

export function paletteOf(): Palette {
  const named = (name: string) => colour(`--map-${name}`);
  return {
    empty: named("empty"),
    low: named("low"),
    middle: named("middle"),
    high: named("high"),
    warn: named("warn"),
    rejectMark: named("reject-mark"),
  };
}

function inks(): Inks {
  return {
    text: colour("--text"),
    muted: colour("--muted"),
    onDark: "#ffffff",
    onLight: "#10151b",
    rejected: colour("--map-reject-mark"),
    chosen: colour("--map-chosen"),
  };
}

/** The nodes by the values of the label; those without it last. */
export function groupsOf(cluster: Cluster): Group[] {
  const groups = cluster.group.values.map((value): Group => {
    const name = value || (cluster.group.values.length > 1 ? `without ${cluster.group.key.split("/").at(-1)}` : "all nodes");
    return { name, members: [] };
  });
  cluster.group.codes.forEach((code, node) => groups[code]?.members.push(node));
  return groups.filter((each) => each.members.length > 0);
}

interface MapProps {
  cluster: Cluster;
  coloured: Coloured;
  picked: string;
  /** A node whose name contains this text is marked. */
  find?: string;
  /** Height on screen; the map scrolls if its cells would become too small. */
  height: number;
  onOpen: (node: string) => void;
  action: string;
  compact?: boolean;
}

/** Width of an element, kept up to date. */
export function useWidth() {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const watch = new ResizeObserver(() => setWidth(element.clientWidth));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  return { box, width };
}

function marked(cells: Cell[], picked: string, find: string): Cell[] {
  if (!picked && !find) return cells;
  return cells.map((cell) =>
    cell.name === picked || (find && cell.name.includes(find)) ? { ...cell, picked: true } : cell,
  );
}

function firstSpot(layout: Layout, cluster: Cluster, picked: string): Spot {
  for (const [block, { group }] of layout.blocks.entries()) {
    const place = group.members.findIndex((node) => cluster.names[node] === picked);
    if (place >= 0) return { block, place };
  }
  return { block: 0, place: 0 };
}

function nodeAt(layout: Layout, spot: Spot | null): number {
  return spot === null ? -1 : (layout.blocks[spot.block]?.group.members[spot.place] ?? -1);
}

export function NodeMap(props: MapProps) {
  const { cluster, coloured, picked, height } = props;
  const { box, width } = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const [scrollTop, setScrollTop] = useState(0);
  const [hovered, setHovered] = useState<Spot | null>(null);
  const [active, setActive] = useState<Spot | null>(null);
  const [fonts, setFonts] = useState(document.fonts.status === "loaded");
  const groups = useMemo(() => groupsOf(cluster), [cluster.group, cluster.names]);
  const layout = useMemo(
    () => layOut(groups, Math.max(width, 60), height, props.compact ? COMPACT : ROOMY),
    [groups, width, height],
  );
  const cells = useMemo(
    () => marked(coloured.cells, picked, props.find ?? ""),
    [coloured, picked, props.find],
  );
  const headings = useMemo(
    () => layout.blocks.map((block) => coloured.headings(block.group.members)),
    [layout, coloured],
  );
  useEffect(() => {
    void document.fonts.ready.then(() => setFonts(true));
  }, []);
  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (!element || !context || width === 0) return;
    const begin = performance.now();
    const ratio = devicePixelRatio || 1;
    const visible = Math.min(height, layout.height + 4);
    if (element.width !== width * ratio || element.height !== visible * ratio) {
      element.width = width * ratio;
      element.height = visible * ratio;
      element.style.width = `${width}px`;
      element.style.height = `${visible}px`;
    }
    const scene = { layout, cells, headings, inks: inks(), scrollTop, width, height: visible };
    paint(context, scene, ratio);
    performance.clearMeasures(DRAW_MEASURE);
    performance.measure(DRAW_MEASURE, { start: begin, end: performance.now() });
  }, [layout, cells, headings, scrollTop, width, height, theme.value, fonts]);

  const spot = active ?? firstSpot(layout, cluster, picked);
  const node = nodeAt(layout, spot);
  const name = cluster.names[node] ?? "";
  const move = (event: KeyboardEvent) => {
    if (!KEYS.includes(event.key)) return;
    event.preventDefault();
    const next = spotBeside(layout, spot, event.key);
    setActive(next);
    const block = layout.blocks[next.block];
    const scroller = box.current;
    if (!block || !scroller) return;
    const { y } = cellAt(layout, block, next.place);
    if (y < scroller.scrollTop) scroller.scrollTop = y - 32;
    const low = y + layout.stepY - scroller.clientHeight;
    if (low > scroller.scrollTop) scroller.scrollTop = low + 8;
  };
  const under = (event: MouseEvent): Spot | null => {
    const area = box.current?.getBoundingClientRect();
    if (!area) return null;
    const top = box.current?.scrollTop ?? 0;
    return spotUnder(layout, event.clientX - area.left, event.clientY - area.top + top);
  };
  const open = (event: MouseEvent) => {
    const clicked = under(event);
    if (!clicked) return;
    setActive(clicked);
    props.onOpen(cluster.names[nodeAt(layout, clicked)] ?? "");
  };
  return (
    <div
      class="map"
      ref={box}
      style={{ height: `${Math.min(height, layout.height + 4)}px` }}
      onScroll={(event) => setScrollTop(event.currentTarget.scrollTop)}
      onMouseMove={(event) => setHovered(under(event))}
      onMouseLeave={() => setHovered(null)}
      onClick={open}
    >
      <div class="map-size" style={{ height: `${layout.height}px` }}>
        <canvas ref={canvas} aria-hidden="true" />
      </div>
      {name && (
        <button
          type="button"
          class="map-cell"
          style={boxOf(layout, spot)}
          aria-label={`${name}, ${coloured.sentence(node)}. ${props.action}`}
          aria-describedby="map-help"
          onKeyDown={move}
          onClick={(event) => {
            event.stopPropagation();
            props.onOpen(name);
          }}
        />
      )}
      <span class="unseen" aria-live="polite">
        {active ? `${name}, ${coloured.sentence(node)}` : ""}
      </span>
      <Tip layout={layout} spot={hovered} cluster={cluster} coloured={coloured} width={width} />
    </div>
  );
}

function boxOf(layout: Layout, spot: Spot): Record<string, string> {
  const block = layout.blocks[spot.block];
  if (!block) return {};
  const { x, y } = cellAt(layout, block, spot.place);
  return {
    left: `${x}px`,
    top: `${y}px`,
    width: `${layout.stepX - layout.gap}px`,
    height: `${layout.stepY - layout.gap}px`,
  };
}

interface TipProps {
  layout: Layout;
  spot: Spot | null;
  cluster: Cluster;
  coloured: Coloured;
  width: number;
}

/** The name and the values of the node under the pointer. */
function Tip({ layout, spot, cluster, coloured, width }: TipProps) {
  const node = nodeAt(layout, spot);
  const block = spot && layout.blocks[spot.block];
  if (node < 0 || !spot || !block) return null;
  const { x, y } = cellAt(layout, block, spot.place);
  const left = Math.max(0, Math.min(x, width - 250));
  return (
    <div class="tip" aria-hidden="true" style={{ left: `${left}px`, top: `${y + layout.stepY + 4}px` }}>
      <b>{cluster.names[node]}</b>
      <span>{coloured.sentence(node)}</span>
      <span class="muted">{cluster.pods[node] ?? 0} pods</span>
    </div>
  );
}
