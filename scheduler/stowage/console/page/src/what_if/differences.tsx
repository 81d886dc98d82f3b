// What the changes lead to: sums before and after, the list of differences, the command.

import { count } from "../formats";
import { CopyButton } from "../parts/notes";
import { Table, type Column } from "../parts/table";
import type { ClusterSums, Difference, WhatIf } from "../server/answers";
import { manifests } from "./question";

const KINDS: Record<string, [string, string]> = {
  placed: ["good", "placed"],
  moved: ["good", "moved"],
  pending: ["warn", "pending"],
  preempted: ["bad", "preempted"],
  deleted: ["bad", "deleted"],
  kept: ["plain", "kept"],
  nodeAdded: ["plain", "node added"],
  nodeRemoved: ["plain", "node removed"],
  nodeCordoned: ["plain", "node cordoned"],
};

const COLUMNS: Column<Difference>[] = [
  {
    name: "Change",
    width: "128px",
    cell: (row) => {
      const [tone, text] = KINDS[row.kind] ?? ["plain", row.kind];
      return <span class={`result ${tone}`}>{text}</span>;
    },
    order: (row) => row.kind,
  },
  {
    name: "What",
    width: "minmax(180px, 1fr)",
    cell: (row) => <span title={row.text}>{textOf(row)}</span>,
    order: textOf,
  },
];

function textOf({ kind, subject, from, to, text }: Difference): string {
  if (kind !== "placed" && kind !== "moved") return text;
  return from ? `${subject}: ${from} → ${to}` : `${subject} → ${to}`;
}

export function Differences({ answer }: { answer: WhatIf }) {
  const { differences, numDifferences, commandLine, before, after, notes } = answer;
  return (
    <>
      <Sums before={before} after={after} />
      {notes.map((each) => (
        <p class="note" key={each}>
          {each}
        </p>
      ))}
      <section aria-label="Differences">
        <h2>
          {count(numDifferences)} {numDifferences === 1 ? "difference" : "differences"}
        </h2>
        <Table
          label="Differences"
          columns={COLUMNS}
          rows={differences}
          keyOf={(row) => `${row.kind} ${row.subject}`}
          empty="The changes make no difference."
          most={10}
          rowHeight={32}
        />
      </section>
      <section aria-label="The same in a terminal">
        <h2>The same in a terminal</h2>
        <div class="command">
          <pre tabIndex={0}>{commandLine}</pre>
          <CopyButton text={commandLine} label="Copy" />
        </div>
        {manifests.value.trim() && (
          <p class="muted small">
            <a
              href={`data:application/yaml;charset=utf-8,${encodeURIComponent(manifests.value)}`}
              download="manifests.yaml"
            >
              Save the YAML
            </a>{" "}
            as manifests.yaml first.
          </p>
        )}
      </section>
    </>
  );
}

function Sums({ before, after }: { before: ClusterSums; after: ClusterSums }) {
  const resources = Object.keys(after.utilisation).slice(0, 4);
  const lines: [string, string, string][] = [
    ["Nodes", count(before.nodes), count(after.nodes)],
    ["Pods on nodes", count(before.placed), count(after.placed)],
    ["Pending pods", count(before.pending), count(after.pending)],
    ...resources.map((each): [string, string, string] => [
      `${each} requested`,
      share(before.utilisation[each]),
      share(after.utilisation[each]),
    ]),
  ];
  return (
    <table class="plain sums" aria-label="The cluster before and after">
      <thead>
        <tr>
          <td />
          {lines.map(([name]) => (
            <th scope="col" key={name}>
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        <tr>
          <th scope="row">Before</th>
          {lines.map(([name, value]) => (
            <td key={name}>{value}</td>
          ))}
        </tr>
        <tr>
          <th scope="row">After</th>
          {lines.map(([name, old, value]) => (
            <td key={name} class={old === value ? "" : "changed"}>
              {value}
            </td>
          ))}
        </tr>
      </tbody>
    </table>
  );
}

const share = (value: number | undefined): string =>
  value === undefined ? "none" : `${(value * 100).toFixed(1)} %`;
