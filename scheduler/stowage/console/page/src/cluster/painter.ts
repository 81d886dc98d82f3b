// Draws the map: one rectangle a node, on a 2D canvas. 5,000 rectangles of a few colours take a
// few milliseconds, so WebGL would bring a larger page and no faster one.

import { cellAt, type Layout, type Spot } from "./layout";

export interface Cell {
  fill: string;
  /** Drawn small, or as an outline: a difference that needs no colour vision. */
  rejected: boolean;
  /** Outlined: the chosen node, the node that is open, changed nodes. */
  picked: boolean;
  name: string;
  value: string;
  /** A third line, where the cell has room for it. */
  note: string;
}

export interface Inks {
  text: string;
  muted: string;
  onDark: string;
  onLight: string;
  rejected: string;
  chosen: string;
}

export interface Scene {
  layout: Layout;
  cells: Cell[];
  headings: string[];
  inks: Inks;
  scrollTop: number;
  width: number;
  height: number;
}

/** Whether black or white text is legible on a colour such as rgb(1, 2, 3) or #010203. */
export function isDark(fill: string): boolean {
  const numbers = fill.startsWith("#")
    ? [1, 3, 5].map((at) => parseInt(fill.slice(at, at + 2), 16))
    : (fill.match(/\d+(\.\d+)?/g) ?? []).map(Number);
  const [red = 0, green = 0, blue = 0] = numbers.map((each) => (each / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.2;
}

function cutText(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  let end = text.length - 1;
  while (end > 1 && context.measureText(`${text.slice(0, end)}…`).width > width) end -= 1;
  return `${text.slice(0, end)}…`;
}

/** Paints what is visible of the scene. */
export function paint(context: CanvasRenderingContext2D, scene: Scene, ratio: number): void {
  const { layout, width, height, scrollTop } = scene;
  context.setTransform(ratio, 0, 0, ratio, 0, -scrollTop * ratio);
  context.clearRect(0, scrollTop, width, height);
  for (const [index, block] of layout.blocks.entries()) {
    const rows = Math.ceil(block.group.members.length / block.columns);
    if (block.y + 28 + rows * layout.stepY < scrollTop || block.y > scrollTop + height) continue;
    paintHeading(context, scene, index);
    const firstRow = Math.max(0, Math.floor((scrollTop - block.y - 28) / layout.stepY));
    const lastRow = Math.ceil((scrollTop + height - block.y - 28) / layout.stepY);
    const end = Math.min(block.group.members.length, lastRow * block.columns);
    for (let place = firstRow * block.columns; place < end; place += 1) {
      paintCell(context, scene, { block: index, place });
    }
  }
}

function paintHeading(context: CanvasRenderingContext2D, scene: Scene, index: number): void {
  const block = scene.layout.blocks[index];
  if (!block) return;
  const { name } = block.group;
  const right = block.x + block.width - scene.layout.gap;
  const whole = scene.headings[index] ?? "";
  context.textBaseline = "alphabetic";
  context.font = '600 13px "Inter Variable", system-ui, sans-serif';
  const nameWidth = context.measureText(name).width;
  context.font = '400 12.5px "Inter Variable", system-ui, sans-serif';
  const fits = nameWidth + context.measureText(whole).width + 20 <= block.width;
  const note = fits ? whole : (whole.split(" · ").at(-1) ?? "");
  const left = block.width - context.measureText(note).width - 16;
  context.textAlign = "right";
  context.fillStyle = scene.inks.muted;
  context.fillText(note, right, block.y + 16);
  context.textAlign = "left";
  context.font = '600 13px "Inter Variable", system-ui, sans-serif';
  context.fillStyle = scene.inks.text;
  context.fillText(cutText(context, name, left), block.x, block.y + 16);
}

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

function paintCell(context: CanvasRenderingContext2D, scene: Scene, spot: Spot): void {
  const { layout, inks } = scene;
  const block = layout.blocks[spot.block];
  const cell = scene.cells[block?.group.members[spot.place] ?? -1];
  if (!block || !cell) return;
  const { x, y } = cellAt(layout, block, spot.place);
  const box = { x, y, width: layout.stepX - layout.gap, height: layout.stepY - layout.gap };
  if (layout.named) paintNamed(context, cell, inks, box);
  else if (cell.rejected) paintRejected(context, inks, box);
  else paintFull(context, cell, box);
  if (cell.picked) {
    context.strokeStyle = inks.chosen;
    context.lineWidth = box.width >= 12 ? 2 : 1.5;
    context.strokeRect(x + 0.5, y + 0.5, box.width - 1, box.height - 1);
  }
}

function paintFull(context: CanvasRenderingContext2D, cell: Cell, box: Box): void {
  context.fillStyle = cell.fill;
  if (box.width < 12) {
    context.fillRect(box.x, box.y, box.width, box.height);
    return;
  }
  context.beginPath();
  context.roundRect(box.x, box.y, box.width, box.height, 2.5);
  context.fill();
}

function paintRejected(context: CanvasRenderingContext2D, inks: Inks, box: Box): void {
  const size = Math.max(2, Math.round(box.width * 0.36));
  const inset = (box.width - size) / 2;
  context.fillStyle = inks.rejected;
  context.fillRect(box.x + inset, box.y + inset, size, size);
}

function paintNamed(context: CanvasRenderingContext2D, cell: Cell, inks: Inks, box: Box): void {
  context.beginPath();
  context.roundRect(box.x + 0.5, box.y + 0.5, box.width - 1, box.height - 1, 5);
  if (cell.rejected) {
    context.strokeStyle = inks.rejected;
    context.lineWidth = 1;
    context.stroke();
    context.fillStyle = inks.muted;
  } else {
    context.fillStyle = cell.fill;
    context.fill();
    context.fillStyle = isDark(cell.fill) ? inks.onDark : inks.onLight;
  }
  const lines = box.height >= 60 ? [cell.name, cell.value, cell.note] : [cell.name, cell.value];
  const top = box.y + (box.height - (lines.length - 1) * 16) / 2 + 4;
  context.textAlign = "left";
  lines.forEach((line, index) => {
    const weight = index === 0 ? "560 13px" : "400 12px";
    context.font = `${weight} "Inter Variable", system-ui, sans-serif`;
    context.fillText(cutText(context, line, box.width - 20), box.x + 10, top + index * 16);
  });
}
