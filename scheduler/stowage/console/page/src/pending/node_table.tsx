// The explain table: every node with its verdict and its scores; sortable and filterable.

import { useMemo, useState } from "preact/hooks";
import { count } from "../formats";
import { rejectionText } from "../cluster/colouring";
import { NodeLink } from "../parts/notes";
import { Table, type Column } from "../parts/table";
import { addressOf } from "../routing";
import type { Explanation, NodeTable, Rejection } from "../server/answers";

interface NodeRow {
  node: string;
  /** The rejections; none: the pod fits, unless the node was left out. */
  rejections: Rejection[];
  leftOut: boolean;
  total: number | null;
  /** Weighted score by plugin, for scored nodes. */
  scores: (number | undefined)[];
}

function rowsOf(table: NodeTable): NodeRow[] {
  return table.nodes.map((node, place) => {
    const verdict = table.verdict[place] ?? -2;
    const codes = verdict >= 0 ? [verdict, ...(table.also[place] ?? [])] : [];
    return {
      node,
      rejections: codes.flatMap((code) => table.rejections[code] ?? []),
      leftOut: verdict === -2,
      total: table.total[place] ?? null,
      scores: table.plugins.map((each) => each.weighted[place]),
    };
  });
}

function verdictText(row: NodeRow): string {
  if (row.leftOut) return "left out before Filter";
  return row.rejections.map(rejectionText).join("; ") || "fits";
}

function columnsOf(table: NodeTable): Column<NodeRow>[] {
  const scored = table.plugins.length > 0;
  return [
    {
      name: "Node",
      width: "minmax(120px, 1fr)",
      cell: (row) => <NodeLink node={row.node} />,
      order: (row) => row.node,
    },
    {
      name: "Verdict",
      width: scored ? "minmax(110px, 1.4fr)" : "minmax(170px, 4fr)",
      cell: (row) => (
        <span class={row.rejections.length || row.leftOut ? "" : "fits"} title={verdictText(row)}>
          {verdictText(row)}
        </span>
      ),
      order: verdictText,
      spans: (row) => row.total === null,
    },
    ...table.plugins.map(
      (each, index): Column<NodeRow> => ({
        name: shortName(each.plugin),
        title: `${each.plugin}, weight ${each.weight}`,
        width: "minmax(84px, 0.7fr)",
        cell: (row) => row.scores[index] ?? "",
        order: (row) => row.scores[index] ?? -1,
        numeric: true,
        wide: true,
      }),
    ),
    ...(scored
      ? [
          {
            name: "Total",
            width: "80px",
            cell: (row: NodeRow) => (row.total === null ? "" : <b>{count(row.total)}</b>),
            order: (row: NodeRow) => row.total ?? -1,
            numeric: true,
          },
        ]
      : []),
  ];
}

/** A plugin's name for the head of a narrow column; the whole name is its title. */
export function shortName(plugin: string): string {
  const short = plugin
    .replace("NodeResourcesBalancedAllocation", "Balanced")
    .replace("NodeResources", "")
    .replace("PodTopologySpread", "Spread")
    .replace("TaintToleration", "Taints")
    .replace("InterPodAffinity", "PodAffinity")
    .replace("Locality", "");
  return short;
}

const FITS = "fits";

function keep(row: NodeRow, text: string, plugin: string): boolean {
  if (text && !row.node.includes(text) && !verdictText(row).includes(text)) return false;
  if (plugin === FITS) return !row.leftOut && row.rejections.length === 0;
  return !plugin || row.rejections.some((each) => each.plugin === plugin);
}

export function NodeTableView({ explanation }: { explanation: Explanation }) {
  const { table, decision, recorded } = explanation;
  const [text, setText] = useState("");
  const [plugin, setPlugin] = useState("");
  const rows = useMemo(() => rowsOf(table), [table]);
  const columns = useMemo(() => columnsOf(table), [table]);
  const shown = useMemo(
    () => rows.filter((row) => keep(row, text, plugin)),
    [rows, text, plugin],
  );
  const plugins = useMemo(
    () => [...new Set(table.rejections.map((each) => each.plugin))].sort(),
    [table],
  );
  if (!rows.length) return null;
  return (
    <section aria-label="Nodes">
      <div class="head-line">
        <h2>
          {recorded && rows.length < decision.numNodes
            ? `The best ${count(rows.length)} of ${count(decision.numNodes)} nodes`
            : "Every node"}
        </h2>
        <div class="settings inline" role="group" aria-label="Filter of the nodes">
          <label>
            Verdict
            <select value={plugin} onChange={(event) => setPlugin(event.currentTarget.value)}>
              <option value="">all</option>
              <option value={FITS}>fits</option>
              {plugins.map((each) => (
                <option key={each} value={each}>
                  rejected by {each}
                </option>
              ))}
            </select>
          </label>
          <label>
            Find
            <input
              type="search"
              id="search"
              placeholder="node or reason"
              value={text}
              onInput={(event) => setText(event.currentTarget.value)}
            />
          </label>
        </div>
      </div>
      <Table
        label="Nodes with verdicts and scores"
        columns={columns}
        rows={shown}
        keyOf={(row) => row.node}
        address={(row) => addressOf("nodes", row.node)}
        empty="No node matches."
        most={14}
        rowHeight={32}
      />
      <p class="muted small number" role="status">
        {count(shown.length)} of {count(rows.length)} nodes
      </p>
    </section>
  );
}
