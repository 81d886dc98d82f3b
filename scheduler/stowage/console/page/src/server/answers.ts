// What the server answers. Amounts are in milli (cpu), bytes or counts; permille is in 1/1000.

export interface About {
  stowage: string;
  source: { kind: "cluster" | "files" | "recording"; name: string; flags: string };
  live: boolean;
  timeline: boolean;
  decisions: "observed" | "server" | "recording" | "none";
  profiles: { schedulerName: string; filters: string[]; scores: PluginWeight[] }[];
  notes: string[];
  version: number;
}

export interface PluginWeight {
  plugin: string;
  weight: number;
}

export interface ClusterResource {
  name: string;
  unit: Unit;
  allocatable: number;
  requested: number;
  /** requested / allocatable of each node; -1: the node has none. */
  permille: number[];
}

export type Unit = "milli" | "bytes" | "count";

export interface Summary {
  nodes: number;
  placed: number;
  pending: number;
}

/** Entry i of every array is node i. */
export interface Cluster {
  version: number;
  time: string;
  num: number;
  names: string[];
  labelKeys: { key: string; values: number }[];
  group: { key: string; values: string[]; codes: number[] };
  resources: ClusterResource[];
  pods: number[];
  unschedulable: number[];
  taintSets: string[][];
  taints: number[];
  pressures: string[];
  pressure: number[];
  summary: Summary;
}

export interface Rejection {
  plugin: string;
  code: string;
  reasons?: string[];
}

export type Outcome = "Unschedulable" | "Scheduled" | "Gated" | "Error";

/** verdict: -1 fits, -2 left out by PreFilter, k >= 0: rejections[k]. */
export interface Verdicts {
  version: number;
  pod: string;
  outcome: Outcome;
  message: string;
  node: string;
  chosen: string;
  names: string[];
  rejections: Rejection[];
  verdict: number[];
  total: (number | null)[];
}

export interface NodeDetail {
  version: number;
  node: string;
  labels: Record<string, string>;
  unschedulable: boolean;
  taints: string[];
  pressure: string[];
  resources: {
    name: string;
    unit: Unit;
    allocatable: number;
    requested: number;
    free: number;
    text: { allocatable: string; free: string };
  }[];
  pods: {
    pod: string;
    priority: number;
    schedulerName: string;
    requests: Record<string, number>;
    created: string;
  }[];
  rejects: { pod: string; rejectedBy: Rejection[] }[];
  fits: string[];
  judged: number;
  pendingTotal: number;
  decisions: DecisionRow[];
}

export interface PodSearch {
  total: number;
  matching: number;
  pods: { pod: string; node: string; schedulerName: string; priority: number }[];
}

export interface Queues {
  [queue: string]: number;
}

export interface PendingPod {
  pod: string;
  schedulerName: string;
  priority: number;
  since: string;
  pendingS: number;
  queue: string;
  group: string;
  nominatedNode: string;
  reason: string;
  reasonFrom: "condition" | "evaluated" | "gate" | "none";
  waitsFor: Wakeup[];
  requests: Record<string, number>;
}

export interface Wakeup {
  plugin: string;
  events: string[];
}

export interface Pending {
  version: number;
  total: number;
  matching: number;
  queues: Queues;
  pods: PendingPod[];
}

export interface NearMiss {
  change: string;
  text: string;
  plugin: string;
  nodes: string[];
  numNodes: number;
  distance: number;
}

export interface Preemption {
  code: string;
  plugin: string;
  message?: string;
  nominatedNode?: string;
  candidates?: { node: string; victims: string[]; pdbViolations?: number }[];
  numCandidates?: number;
}

/** The arrays of plugins cover the first nodes, which were scored. */
export interface NodeTable {
  nodes: string[];
  verdict: number[];
  also: Record<string, number[]>;
  rejections: Rejection[];
  total: (number | null)[];
  plugins: PluginScores[];
}

export interface PluginScores {
  plugin: string;
  weight: number;
  raw: number[];
  normalized: number[];
  weighted: number[];
}

export interface Explanation {
  version: number;
  pod: string;
  uid: string;
  schedulerName: string;
  profile: string;
  node: string;
  condition: string;
  basis: string;
  recorded: boolean;
  notes: string[];
  group?: { group: string; outcome: string; text: string };
  runnerUp?: { node: string; behind: number; byPlugin: Record<string, number> };
  requests: Record<string, number>;
  priority: number;
  created: string;
  decision: {
    outcome: Outcome;
    message?: string;
    numNodes: number;
    preEnqueue?: Rejection;
    preFilter?: Rejection;
    skippedFilters?: string[];
    skippedScores?: string[];
    unschedulablePlugins?: string[];
    reasonCounts?: Record<string, number>;
    nearMisses?: NearMiss[];
    preemption?: Preemption;
    waitsFor?: Wakeup[];
    chosen?: string;
    best?: string[];
    tie?: { nodes: number; text: string };
    viaNomination?: boolean;
    scored?: boolean;
  };
  table: NodeTable;
}

export interface DecisionRow {
  id: string;
  time: string;
  pod: string;
  uid: string;
  schedulerName: string;
  attempt: number;
  result: "scheduled" | "unschedulable" | "error";
  node: string;
  nominatedNode: string;
  message: string;
  evaluatedNodes: number;
  feasibleNodes: number;
  durationS: number;
  latencyS: number;
  total: number | null;
  runnerUp: string;
  behind: number | null;
  exact: boolean;
}

export interface Decisions {
  version: number;
  source: About["decisions"];
  last: string;
  more: boolean;
  decisions: DecisionRow[];
}

export interface Counts {
  scheduled: number;
  unschedulable: number;
  error: number;
}

export interface Buckets {
  stepS: number;
  start: string;
  scheduled: number[];
  unschedulable: number[];
  error: number[];
  p50: (number | null)[];
  p99: (number | null)[];
}

export interface Stats {
  version: number;
  source: About["decisions"];
  latencyOf: "algorithm" | "pod";
  total: Counts;
  rate: number;
  latencyS: { p50: number | null; p90: number | null; p99: number | null; n: number };
  buckets: Buckets;
}

/** One second of attempts, as the stream brings it. */
export interface LastBucket extends Counts {
  p50: number | null;
  p99: number | null;
  time: string;
  stepS: number;
}

export interface DecisionDetail {
  version: number;
  decision: DecisionRow & {
    reasonCounts?: Record<string, number>;
    unschedulablePlugins?: string[];
    configuration?: string;
  };
  explanation: Explanation;
}

export interface ClusterSums {
  nodes: number;
  placed: number;
  pending: number;
  allocatable: Record<string, string>;
  requested: Record<string, string>;
  utilisation: Record<string, number>;
}

export interface Difference {
  kind: string;
  subject: string;
  from?: string;
  to?: string;
  text: string;
}

export interface WhatIfQuestion {
  manifests?: string;
  cordon?: string[];
  drain?: string[];
  removeNodes?: string[];
  addNodes?: { count: number; like: string };
  weights?: Record<string, number>;
  group?: string;
  at?: string;
}

export interface WhatIf {
  version: number;
  before: ClusterSums;
  after: ClusterSums;
  notes: string[];
  differences: Difference[];
  numDifferences: number;
  maps: { before: Cluster; after: Cluster };
  commandLine: string;
}

export interface LineError {
  line?: number;
  column?: number;
  field?: string;
  message: string;
}

export interface CheckedManifests {
  objects: { kind: string; name: string; pods: number; line: number }[];
  errors: LineError[];
}

export interface Timeline {
  version: number;
  start: string;
  end: string;
  points: {
    time: string[];
    timeS: number[];
    nodes: number[];
    placed: number[];
    pending: number[];
    scheduled: number[];
    unschedulable: number[];
    error: number[];
  };
  marks: { time: string; timeS: number; text: string }[];
}

/** Changed nodes, as the stream brings them. */
export interface NodeChanges {
  version: number;
  names: string[];
  pods: number[];
  unschedulable: number[];
  taints: string[][];
  pressure: number[];
  permille: Record<string, number[]>;
  summary: Summary;
}
