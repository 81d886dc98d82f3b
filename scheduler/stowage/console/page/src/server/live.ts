// What the stream has told: bounded, shared by all views.

import { batch, signal } from "@preact/signals";
import type {
  About,
  Cluster,
  DecisionRow,
  LastBucket,
  NodeChanges,
  Queues,
  Stats,
} from "./answers";
import { Stream } from "./stream";

/** The rows of the live feed, and the steps of its charts, that the page keeps. */
export const MOST_ROWS = 300;
export const MOST_STEPS = 300;

export const about = signal<About | null>(null);
export const numPending = signal(0);
export const queues = signal<Queues>({});
export const upstream = signal<{ state: string; message: string }>({ state: "", message: "" });

/** Counted up when what a view shows has to be asked for again. */
export const clusterEpoch = signal(0);
export const pendingEpoch = signal(0);
export const decisionsEpoch = signal(0);

/** Changes of nodes that came since the cluster was asked for. */
export const nodeChanges = signal<NodeChanges | null>(null);
export const feed = signal<DecisionRow[]>([]);
/** Decisions that the server made but did not send, because there were too many. */
export const notSent = signal(0);
export const stats = signal<Stats | null>(null);

/** The feed with `rows` in front, newest first, without repetitions, bounded. */
export function joinFeed(rows: DecisionRow[], known: DecisionRow[]): DecisionRow[] {
  const ids = new Set(rows.map((each) => each.id));
  return [...rows, ...known.filter((each) => !ids.has(each.id))].slice(0, MOST_ROWS);
}

/** The cluster with the changed nodes in it; the same object if none is part of it. */
export function withChanges(cluster: Cluster, changes: NodeChanges): Cluster {
  if (changes.version <= cluster.version) return cluster;
  const places = new Map(cluster.names.map((name, index) => [name, index]));
  const pods = [...cluster.pods];
  const unschedulable = [...cluster.unschedulable];
  const pressure = [...cluster.pressure];
  const taints = [...cluster.taints];
  const taintSets = [...cluster.taintSets];
  const codes = new Map(taintSets.map((set, code) => [set.join(), code]));
  const resources = cluster.resources.map((each) => ({ ...each, permille: [...each.permille] }));
  changes.names.forEach((name, position) => {
    const node = places.get(name);
    if (node === undefined) return;
    pods[node] = changes.pods[position] ?? 0;
    unschedulable[node] = changes.unschedulable[position] ?? 0;
    pressure[node] = changes.pressure[position] ?? 0;
    const set = changes.taints[position] ?? [];
    if (!codes.has(set.join())) codes.set(set.join(), taintSets.push(set) - 1);
    taints[node] = codes.get(set.join()) ?? 0;
    for (const resource of resources) {
      const permille = changes.permille[resource.name]?.[position];
      if (permille !== undefined) resource.permille[node] = permille;
    }
  });
  const { version } = changes;
  return {
    ...cluster,
    ...{ version, pods, unschedulable, pressure, taints, taintSets, resources },
    summary: changes.summary,
  };
}

/** The statistics with one more step; the oldest go. */
export function withStep(known: Stats, news: Omit<Stats, "buckets"> & { last?: LastBucket }): Stats {
  const { last, ...rest } = news;
  const buckets = { ...known.buckets };
  if (last) {
    const { start, stepS } = buckets;
    const steps = buckets.scheduled.length;
    const step = Math.round((Date.parse(last.time) - Date.parse(start)) / 1000 / stepS);
    if (step >= steps) {
      const missing = Math.min(step - steps, MOST_STEPS);
      const dropped = Math.max(0, steps + missing + 1 - MOST_STEPS);
      const join = <T>(values: T[], filler: T, value: T): T[] =>
        [...values, ...Array<T>(missing).fill(filler), value].slice(dropped);
      buckets.scheduled = join(buckets.scheduled, 0, last.scheduled);
      buckets.unschedulable = join(buckets.unschedulable, 0, last.unschedulable);
      buckets.error = join(buckets.error, 0, last.error);
      buckets.p50 = join(buckets.p50, null, last.p50);
      buckets.p99 = join(buckets.p99, null, last.p99);
      const first = Date.parse(last.time) - (buckets.scheduled.length - 1) * stepS * 1000;
      buckets.start = new Date(first).toISOString();
    }
  }
  return { ...known, ...rest, buckets };
}

function refetchAll(): void {
  batch(() => {
    nodeChanges.value = null;
    clusterEpoch.value += 1;
    pendingEpoch.value += 1;
    decisionsEpoch.value += 1;
  });
}

let greeted = false;

function hello(): void {
  if (greeted) refetchAll();
  greeted = true;
}

function decided(data: { since: number; decisions: DecisionRow[] }): void {
  feed.value = joinFeed(data.decisions, feed.value);
  notSent.value += Math.max(0, data.since - data.decisions.length);
}

function refetch(what: string[]): void {
  if (what.includes("cluster")) clusterEpoch.value += 1;
  if (what.includes("pending")) pendingEpoch.value += 1;
  if (what.includes("decisions")) decisionsEpoch.value += 1;
}

/** The sums of the cluster are not in the stream; they are asked for again now and then. */
const SUMS_MS = 30_000;
let summed = performance.now();

function nodesChanged(data: NodeChanges): void {
  nodeChanges.value = data;
  numPending.value = data.summary.pending;
  if (performance.now() - summed < SUMS_MS) return;
  summed = performance.now();
  clusterEpoch.value += 1;
}

function pendingChanged(data: { total: number; queues: Queues }): void {
  queues.value = data.queues;
  numPending.value = data.total;
  pendingEpoch.value += 1;
}

const RECEIVERS: Record<string, (data: any) => void> = {
  hello,
  reset: refetchAll,
  refetch: (data: { what: string[] }) => refetch(data.what),
  nodes: nodesChanged,
  pending: pendingChanged,
  decisions: decided,
  stats: (data: Stats & { last?: LastBucket }) => {
    if (stats.value) stats.value = withStep(stats.value, data);
  },
  source: (data: { state: string; message: string }) => {
    upstream.value = data;
  },
};

export function listen(): void {
  new Stream("/stream", (event, data) => {
    batch(() => RECEIVERS[event]?.(data));
  });
}
