// A table of any length: only the rows in sight are in the document.

import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
} from "@tanstack/virtual-core";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { go } from "../routing";

export interface Column<Row> {
  name: string;
  /** Width as a CSS grid track, e.g. 80px, minmax(120px, 1fr). */
  width: string;
  cell: (row: Row) => ComponentChildren;
  /** Value to sort by; without it the column is not sortable. */
  order?: (row: Row) => number | string;
  /** Numbers start with the largest when sorted. */
  numeric?: boolean;
  /** Left out on narrow screens. */
  wide?: boolean;
  title?: string;
  /** The rows whose cell takes all columns behind it as well. */
  spans?: (row: Row) => boolean;
}

export interface Sorting {
  column: string;
  falling: boolean;
}

interface TableProps<Row> {
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  keyOf: (row: Row) => string;
  /** Where a click on a row leads. */
  address?: (row: Row) => string;
  classOf?: (row: Row) => string;
  empty: string;
  rowHeight?: number;
  /** Height on narrow screens, where the text of a cell then has several lines. */
  narrowHeight?: number;
  /** Rows that are shown at most before the table scrolls. */
  most?: number;
}

const NARROW = matchMedia("(max-width: 700px)");

function useNarrow(): boolean {
  const [narrow, setNarrow] = useState(NARROW.matches);
  useEffect(() => {
    const changed = () => setNarrow(NARROW.matches);
    NARROW.addEventListener("change", changed);
    return () => NARROW.removeEventListener("change", changed);
  }, []);
  return narrow;
}

function sorted<Row>(rows: Row[], columns: Column<Row>[], sorting: Sorting | null): Row[] {
  const order = columns.find((each) => each.name === sorting?.column)?.order;
  if (!order || !sorting) return rows;
  const sign = sorting.falling ? -1 : 1;
  return [...rows].sort((one, other) => {
    const left = order(one);
    const right = order(other);
    return left < right ? -sign : left > right ? sign : 0;
  });
}

/** The rows in sight, of `size` rows of equal height. */
function useVisible(size: number, height: number) {
  const box = useRef<HTMLDivElement>(null);
  const [, redraw] = useState(0);
  const settings = {
    count: size,
    getScrollElement: () => box.current,
    estimateSize: () => height,
    overscan: 6,
    paddingStart: 32,
    initialRect: { width: 0, height: 600 },
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    onChange: () => redraw((before) => before + 1),
  };
  const virtual = useMemo(() => new Virtualizer<HTMLDivElement, HTMLDivElement>(settings), []);
  virtual.setOptions(settings);
  useLayoutEffect(() => virtual._didMount(), []);
  useLayoutEffect(() => virtual._willUpdate());
  return { box, virtual };
}

export function Table<Row>(props: TableProps<Row>) {
  const [sorting, setSorting] = useState<Sorting | null>(null);
  const narrow = useNarrow();
  const columns = props.columns.filter((each) => !(narrow && each.wide));
  const rows = useMemo(
    () => sorted(props.rows, props.columns, sorting),
    [props.rows, sorting, props.columns.length],
  );
  const wrapped = narrow ? props.narrowHeight : undefined;
  const height = wrapped ?? props.rowHeight ?? 36;
  const { box, virtual } = useVisible(rows.length, height);
  const tracks = columns.map((each) => each.width).join(" ");
  const shown = Math.min(Math.max(rows.length, 2), props.most ?? 14);
  return (
    <div
      class={wrapped ? "table wraps" : "table"}
      role="table"
      aria-label={props.label}
      aria-rowcount={rows.length + 1}
      tabIndex={0}
      ref={box}
      style={{ maxHeight: `${shown * height + 34}px`, "--tracks": tracks, "--row": `${height}px` }}
    >
      <Head columns={columns} sorting={sorting} onSort={setSorting} />
      {rows.length === 0 ? (
        <p class="empty">{props.empty}</p>
      ) : (
        <div role="rowgroup" style={{ height: `${virtual.getTotalSize() - 32}px` }} class="rows">
          {virtual.getVirtualItems().map((item) => {
            const row = rows[item.index];
            if (row === undefined) return null;
            const address = props.address?.(row);
            return (
              <div
                role="row"
                key={props.keyOf(row)}
                aria-rowindex={item.index + 2}
                class={`row ${props.classOf?.(row) ?? ""} ${address ? "leads" : ""}`}
                style={{ transform: `translateY(${item.start - 32}px)` }}
                onClick={(event) => {
                  const inside = event.target as HTMLElement;
                  if (address && !inside.closest("a, button")) go(address);
                }}
              >
                {cellsOf(columns, row)}
              </div>
            );
          })}
        </div>
      )}
    </div>
  );
}

function cellsOf<Row>(columns: Column<Row>[], row: Row) {
  const spanning = columns.findIndex((each) => each.spans?.(row));
  const shown = spanning < 0 ? columns : columns.slice(0, spanning + 1);
  return shown.map((each, place) => (
    <div
      role="cell"
      key={each.name}
      class={each.numeric ? "number right" : ""}
      {...(place === spanning
        ? { "aria-colspan": columns.length - place, style: { gridColumn: `${place + 1} / -1` } }
        : {})}
    >
      {each.cell(row)}
    </div>
  ));
}

interface HeadProps<Row> {
  columns: Column<Row>[];
  sorting: Sorting | null;
  onSort: (sorting: Sorting) => void;
}

function Head<Row>({ columns, sorting, onSort }: HeadProps<Row>) {
  return (
    <div role="rowgroup" class="head">
      <div role="row" aria-rowindex={1} class="row">
        {columns.map((each) => {
          const active = sorting?.column === each.name;
          const direction = active ? (sorting.falling ? "descending" : "ascending") : "none";
          const falling = active ? !sorting.falling : Boolean(each.numeric);
          return (
            <div
              role="columnheader"
              key={each.name}
              class={each.numeric ? "right" : ""}
              title={each.title}
              {...(each.order ? { "aria-sort": direction } : {})}
            >
              {each.order ? (
                <button
                  type="button"
                  class="plain"
                  onClick={() => onSort({ column: each.name, falling })}
                >
                  {each.name}
                  {active && <span aria-hidden="true">{sorting.falling ? "↓" : "↑"}</span>}
                </button>
              ) : (
                each.name
              )}
            </div>
          );
        })}
      </div>
    </div>
  );
}
