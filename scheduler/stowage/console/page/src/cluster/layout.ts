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
const MIN_BLOCK = 130;
const NAMED_STEPS: [number, number][] = [
  [188, 48],
  [148, 44],
  [118, 40],
];
const LARGEST = 30;
const SMALLEST = 6;

function place(groups: Group[], width: number, stepX: number, stepY: number): Layout {
  const mostMembers = Math.max(1, ...groups.map((each) => each.members.length));
  const wanted = Math.max(MIN_BLOCK, Math.min(width, stepX * Math.min(mostMembers, 12)));
  const fitting = Math.max(1, Math.floor((width + BLOCK_GAP) / (Math.min(wanted, width) + BLOCK_GAP)));
  const across = Math.min(groups.length || 1, Math.max(fitting, bestAcross(groups, width)));
  const blockWidth = Math.floor((width - BLOCK_GAP * (across - 1)) / across);
  const columns = Math.max(1, Math.floor(blockWidth / stepX));
  const blocks: Block[] = [];
  let y = 0;
  for (let first = 0; first < groups.length; first += across) {
    let tallest = 0;
    groups.slice(first, first + across).forEach((group, place) => {
      blocks.push({ group, x: place * (blockWidth + BLOCK_GAP), y, width: blockWidth, columns });
      tallest = Math.max(tallest, Math.ceil(group.members.length / columns));
    });
    y += HEADING + tallest * stepY + BLOCK_GAP;
  }
  const gap = stepX > 60 ? 6 : stepX >= 14 ? 3 : stepX >= 9 ? 2 : 1;
  return { blocks, stepX, stepY, gap, named: stepX > 60, height: Math.max(0, y - BLOCK_GAP) };
}

/** Blocks beside each other: all of a few groups, else as many as are wide enough to read. */
function bestAcross(groups: Group[], width: number): number {
  const most = Math.max(1, Math.floor((width + BLOCK_GAP) / (MIN_BLOCK + BLOCK_GAP)));
  return groups.length <= most ? groups.length : 1;
}

/** The layout with the largest cells that fit; if none fits, it is higher than `height`. */
export function layOut(groups: Group[], width: number, height: number): Layout {
  for (const [stepX, stepY] of NAMED_STEPS) {
    const layout = place(groups, width, stepX, stepY);
    if (layout.height <= height && stepX * 1.2 <= width) return layout;
  }
  for (let step = LARGEST; step > SMALLEST; step -= 1) {
    const layout = place(groups, width, step, step);
    if (layout.height <= height) return layout;
  }
  return place(groups, width, SMALLEST + 1, SMALLEST + 1);
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
