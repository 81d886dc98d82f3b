// Where each node's cell is: groups of cells, as large as the space allows. Pure.

export interface Group {
  name: string;
  /** Indices of nodes, in the order in which they are drawn. */
  members: number[];
}

export interface Block {
  group: Group;
  x: number;
  y: number;
  width: number;
  columns: number;
}

export interface Layout {
  blocks: Block[];
  /** Width and height of a cell with the gap behind it, and the gap. */
  stepX: number;
  stepY: number;
  gap: number;
  /** Cells are wide enough to hold the node's name. */
  named: boolean;
  height: number;
}

export const HEADING = 28;
const BLOCK_GAP = 24;
/** Sizes of cells that hold the node's name: least width, height. */
const NAMED_SIZES: [number, number][] = [
  [220, 72],
  [170, 46],
  [124, 42],
];
const WIDEST_NAMED = 300;
const LARGEST = 30;

/** The smallest cell, and the narrowest group with a legible name, in pixels. */
export interface Least {
  cell: number;
  block: number;
}
export const ROOMY: Least = { cell: 7, block: 165 };
/** For a map that is a part of a view: all nodes in sight rather than easy to hit. */
export const COMPACT: Least = { cell: 4, block: 96 };

/** Width of each block of a row: by its number of nodes, none too narrow for its name. */
function widths(row: Group[], width: number, least: Least): number[] {
  const room = width - BLOCK_GAP * (row.length - 1);
  const narrowest = Math.min(least.block, room / row.length);
  const sizes = row.map((each) => Math.max(1, each.members.length));
  let free = room;
  let rest = sizes.reduce((sum, each) => sum + each, 0);
  const found = new Map<number, number>();
  for (const index of [...sizes.keys()].sort((one, other) => (sizes[one] ?? 0) - (sizes[other] ?? 0))) {
    const size = sizes[index] ?? 1;
    const share = Math.max(narrowest, (free * size) / rest);
    found.set(index, Math.floor(share));
    free -= share;
    rest -= size;
  }
  return row.map((_, index) => found.get(index) ?? room);
}

/** All groups beside each other if they are few, else as many as are wide enough to read. */
function rowsOf(groups: Group[], width: number, least: Least): Group[][] {
  const across = Math.max(1, Math.floor((width + BLOCK_GAP) / (least.block + BLOCK_GAP)));
  const rows: Group[][] = [];
  for (let first = 0; first < groups.length; first += across) {
    rows.push(groups.slice(first, first + across));
  }
  return rows;
}

interface Row {
  groups: Group[];
  widths: number[];
}

/** The layout with cells of one size; null if they are wider than a block. */
function place(
  rows: Row[],
  width: number,
  [least, stepY]: [number, number],
  named: boolean,
): Layout | null {
  const narrowest = Math.min(width, ...rows.flatMap((row) => row.widths));
  if (least > narrowest) return null;
  const fitting = narrowest / Math.floor(narrowest / least);
  const stepX = named ? Math.floor(Math.min(fitting, WIDEST_NAMED)) : least;
  const blocks: Block[] = [];
  let y = 0;
  for (const row of rows) {
    let x = 0;
    let tallest = 0;
    row.groups.forEach((group, at) => {
      const blockWidth = row.widths[at] ?? width;
      const columns = Math.max(1, Math.floor(blockWidth / stepX));
      blocks.push({ group, x, y, width: blockWidth, columns });
      x += blockWidth + BLOCK_GAP;
      tallest = Math.max(tallest, Math.ceil(group.members.length / columns));
    });
    y += HEADING + tallest * stepY + BLOCK_GAP;
  }
  const gap = named ? 6 : stepX >= 14 ? 3 : stepX >= 9 ? 2 : 1;
  return { blocks, stepX, stepY, gap, named, height: Math.max(0, y - BLOCK_GAP) };
}

/** The layout with the largest cells that fit; if none fits, it is higher than `height`. */
export function layOut(groups: Group[], width: number, height: number, least = ROOMY): Layout {
  const rows = rowsOf(groups, width, least).map((row): Row => {
    return { groups: row, widths: widths(row, width, least) };
  });
  for (const size of NAMED_SIZES) {
    const layout = place(rows, width, size, true);
    if (layout && layout.height <= height) return layout;
  }
  for (let step = LARGEST; step > least.cell; step -= 1) {
    const layout = place(rows, width, [step, step], false);
    if (layout && layout.height <= height) return layout;
  }
  const smallest = place(rows, width, [least.cell, least.cell], false);
  return smallest ?? { blocks: [], stepX: 1, stepY: 1, gap: 0, named: false, height: 0 };
}

/** Left upper corner of the cell at `place` in its block. */
export function cellAt(layout: Layout, block: Block, place: number): { x: number; y: number } {
  return {
    x: block.x + (place % block.columns) * layout.stepX,
    y: block.y + HEADING + Math.floor(place / block.columns) * layout.stepY,
  };
}

export interface Spot {
  block: number;
  place: number;
}

/** The cell under a point; null beside the cells. */
export function spotUnder(layout: Layout, x: number, y: number): Spot | null {
  for (const [index, block] of layout.blocks.entries()) {
    const column = Math.floor((x - block.x) / layout.stepX);
    const row = Math.floor((y - block.y - HEADING) / layout.stepY);
    if (column < 0 || column >= block.columns || row < 0) continue;
    const place = row * block.columns + column;
    if (place < block.group.members.length) return { block: index, place };
  }
  return null;
}

/** The cell that an arrow key leads to, within a block and from block to block. */
export function spotBeside(layout: Layout, from: Spot, key: string): Spot {
  const block = layout.blocks[from.block];
  if (!block) return from;
  const size = block.group.members.length;
  const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: block.columns, ArrowUp: -block.columns }[key];
  if (step === undefined) {
    if (key === "Home") return { block: from.block, place: 0 };
    if (key === "End") return { block: from.block, place: size - 1 };
    const other = from.block + (key === "PageDown" ? 1 : -1);
    return layout.blocks[other] ? { block: other, place: 0 } : from;
  }
  const place = from.place + step;
  if (place >= 0 && place < size) return { block: from.block, place };
  const other = layout.blocks[from.block + Math.sign(step)];
  if (!other || other.group.members.length === 0) return from;
  const last = other.group.members.length - 1;
  return { block: from.block + Math.sign(step), place: step > 0 ? 0 : last };
}
