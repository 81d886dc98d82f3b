// One node: free room, taints, pods, pending pods that it rejects, recent decisions.

import { useEffect, useRef } from "preact/hooks";
import { amount, clock, count, plural, requestsText } from "../formats";
import { Awaited, Bar, PodLink, Result } from "../parts/notes";
import { Table, type Column } from "../parts/table";
import { addressOf, at, go, moved } from "../routing";
import type { NodeDetail } from "../server/answers";
import { pathOf, useAnswer } from "../server/ask";
import { clusterEpoch, nodeChanges } from "../server/live";
import { rejectionText } from "./colouring";

type NodePod = NodeDetail["pods"][number];

const PODS: Column<NodePod>[] = [
  {
    name: "Pod",
    width: "minmax(0, 1.2fr)",
    cell: (row) => <PodLink pod={row.pod} />,
    order: (row) => row.pod,
  },
  {
    name: "Requests",
    width: "minmax(0, 1fr)",
    cell: (row) => <span class="muted small cut">{requestsText(row.requests) || "nothing"}</span>,
  },
  {
    name: "Priority",
    width: "56px",
    cell: (row) => count(row.priority),
    order: (row) => row.priority,
    numeric: true,
    wide: true,
  },
];

export function NodePanel({ node, close }: { node: string; close: string }) {
  const heading = useRef<HTMLHeadingElement>(null);
  const touched = nodeChanges.value?.names.includes(node) ? nodeChanges.value.version : 0;
  const path = pathOf(`/api/nodes/${encodeURIComponent(node)}`, { at: at() });
  const answer = useAnswer<NodeDetail>(path, clusterEpoch.value + touched).value;
  useEffect(() => {
    if (moved.peek()) heading.current?.focus({ preventScroll: true });
  }, [node]);
  return (
    <aside
      class="panel"
      aria-label={`Node ${node}`}
      onKeyDown={(event) => {
        if (event.key === "Escape") go(close);
      }}
    >
      <div class="panel-head">
        <h2 tabIndex={-1} ref={heading} class="cut">
          {node}
        </h2>
        <a class="button plain" href={close} aria-label="Close the node (Escape)">
          <span aria-hidden="true">✕</span>
        </a>
      </div>
      <Awaited answer={answer}>{(value) => <Detail detail={value} />}</Awaited>
    </aside>
  );
}

function Detail({ detail }: { detail: NodeDetail }) {
  const state = [...detail.pressure.map((each) => `pressure: ${each}`)];
  if (detail.unschedulable) state.push("cordoned");
  return (
    <>
      {state.length > 0 && <p class="note warn">{state.join(", ")}</p>}
      <section aria-label="Free room">
        <h3>Free room</h3>
        <ul class="rooms">
          {detail.resources
            .filter((each) => each.allocatable > 0)
            .map((each) => (
              <li key={each.name}>
                <span class="cut">{each.name}</span>
                <Bar share={each.requested / each.allocatable} />
                <span class="number right">
                  {amount(each.free, each.unit)} <span class="muted">of</span>{" "}
                  {amount(each.allocatable, each.unit)}
                </span>
              </li>
            ))}
        </ul>
      </section>
      <Taints taints={detail.taints} />
      <section aria-label="Pods">
        <h3>{plural(detail.pods.length, "pod")}</h3>
        <Table
          label={`Pods on ${detail.node}`}
          columns={PODS}
          rows={detail.pods}
          keyOf={(row) => row.pod}
          address={(row) => addressOf("pods", row.pod)}
          empty="No pod is on this node."
          most={8}
          rowHeight={32}
        />
      </section>
      <PendingHere detail={detail} />
      <Recent detail={detail} />
      <details>
        <summary>{plural(Object.keys(detail.labels).length, "label")}</summary>
        <ul class="labels mono">
          {Object.entries(detail.labels).map(([key, value]) => (
            <li key={key}>
              {key}={value}
            </li>
          ))}
        </ul>
      </details>
    </>
  );
}

function Taints({ taints }: { taints: string[] }) {
  if (!taints.length) return null;
  return (
    <section aria-label="Taints">
      <h3>Taints</h3>
      <ul class="labels mono">
        {taints.map((each) => (
          <li key={each}>{each}</li>
        ))}
      </ul>
    </section>
  );
}

function PendingHere({ detail }: { detail: NodeDetail }) {
  if (!detail.rejects.length && !detail.fits.length) return null;
  const judged =
    detail.judged < detail.pendingTotal
      ? ` (${count(detail.judged)} of ${count(detail.pendingTotal)} judged)`
      : "";
  return (
    <section aria-label="Pending pods">
      <h3>Pending pods{judged}</h3>
      <ul class="lines">
        {detail.fits.slice(0, 8).map((pod) => (
          <li key={pod}>
            <PodLink pod={pod} />
            <span class="small">fits here</span>
          </li>
        ))}
        {detail.rejects.slice(0, 20).map((each) => (
          <li key={each.pod}>
            <PodLink pod={each.pod} />
            <span class="muted small">{each.rejectedBy.map(rejectionText).join("; ")}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Recent({ detail }: { detail: NodeDetail }) {
  if (!detail.decisions.length) return null;
  return (
    <section aria-label="Recent decisions">
      <h3>Recent decisions</h3>
      <ul class="lines">
        {detail.decisions.map((each) => (
          <li key={each.id}>
            <a href={addressOf("decisions", each.id)} class="number">
              {clock(each.time)}
            </a>
            <span class="cut">{each.pod}</span>
            <Result result={each.result} />
          </li>
        ))}
      </ul>
    </section>
  );
}
