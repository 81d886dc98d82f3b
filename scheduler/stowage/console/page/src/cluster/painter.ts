// Draws the map: one rectangle a node, on a 2D canvas. 5,000 rectangles of a few colours take a
// few milliseconds, so WebGL would bring a larger page and no faster one.

import { cellAt, type Layout, type Spot } from "./layout";

export interface Cell {
  fill: string;
  /** A mark that says the same as the colour: for rejected nodes, chosen ones. */
  mark: "" | "cross" | "chosen" | "picked";
  name: string;
  value: string;
}

export interface Inks {
  text: string;
  muted: string;
  onDark: string;
  onLight: string;
  cross: string;
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
  context.textBaseline = "alphabetic";
  context.textAlign = "right";
  context.font = '400 12.5px "Inter Variable", system-ui, sans-serif';
  context.fillStyle = scene.inks.muted;
  const note = scene.headings[index] ?? "";
  const right = block.x + block.width - scene.layout.gap;
  context.fillText(note, right, block.y + 16);
  const left = block.width - context.measureText(note).width - 16;
  context.textAlign = "left";
  context.font = '600 13px "Inter Variable", system-ui, sans-serif';
  context.fillStyle = scene.inks.text;
  context.fillText(cutText(context, block.group.name, left), block.x, block.y + 16);
}

function paintCell(context: CanvasRenderingContext2D, scene: Scene, spot: Spot): void {
  const { layout, inks } = scene;
  const block = layout.blocks[spot.block];
  const cell = scene.cells[block?.group.members[spot.place] ?? -1];
  if (!block || !cell) return;
  const { x, y } = cellAt(layout, block, spot.place);
  const width = layout.stepX - layout.gap;
  const height = layout.stepY - layout.gap;
  context.fillStyle = cell.fill;
  if (layout.stepX >= 14) {
    context.beginPath();
    context.roundRect(x, y, width, height, layout.named ? 5 : 2.5);
    context.fill();
  } else {
    context.fillRect(x, y, width, height);
  }
  if (layout.named) paintLabel(context, cell, inks, { x, y, width, height });
  if (cell.mark === "cross" && !layout.named) paintCross(context, inks.cross, { x, y, width, height });
  if (cell.mark === "chosen" || cell.mark === "picked") {
    context.strokeStyle = inks.chosen;
    context.lineWidth = layout.stepX >= 14 ? 2 : 1.5;
    context.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
  }
}

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

function paintLabel(context: CanvasRenderingContext2D, cell: Cell, inks: Inks, box: Box): void {
  context.fillStyle = isDark(cell.fill) ? inks.onDark : inks.onLight;
  context.textAlign = "left";
  context.font = '540 12.5px "Inter Variable", system-ui, sans-serif';
  const middle = box.y + box.height / 2;
  context.fillText(cutText(context, cell.name, box.width - 16), box.x + 8, middle - 2);
  context.font = '400 11.5px "Inter Variable", system-ui, sans-serif';
  context.fillText(cutText(context, cell.value, box.width - 16), box.x + 8, middle + 13);
}

function paintCross(context: CanvasRenderingContext2D, ink: string, box: Box): void {
  const inset = Math.max(1.5, box.width * 0.3);
  context.strokeStyle = ink;
  context.lineWidth = box.width >= 12 ? 1.5 : 1;
  context.beginPath();
  context.moveTo(box.x + inset, box.y + inset);
  context.lineTo(box.x + box.width - inset, box.y + box.height - inset);
  context.moveTo(box.x + box.width - inset, box.y + inset);
  context.lineTo(box.x + inset, box.y + box.height - inset);
  context.stroke();
}
