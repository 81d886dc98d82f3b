// What the colour of a cell means. Pure but for the theme's colours, which are passed in.

import { count, percent, plural } from "../formats";
import type { Cluster, Rejection, Verdicts } from "../server/answers";
import type { Cell } from "./painter";

export interface Palette {
  empty: string;
  low: string;
  middle: string;
  high: string;
  warn: string;
  rejectMark: string;
}

export interface Key {
  fill: string;
  small?: boolean;
  text: string;
}

export interface Coloured {
  cells: Cell[];
  /** The legend: a ramp from one text to another, and single colours. */
  ramp: { from: string; to: string } | null;
  keys: Key[];
  /** Right of each group's name. */
  headings: (members: number[]) => string;
  /** The sentence about one node, after its name. */
  sentence: (node: number) => string;
}

function parts(hex: string): number[] {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

function mix(one: string, other: string, share: number): string {
  const right = parts(other);
  const mixed = parts(one).map((value, at) => value + ((right[at] ?? 0) - value) * share);
  return `rgb(${mixed.map(Math.round).join(", ")})`;
}

/** Steps from low over middle to high: few enough to tell apart, the same for all cells. */
export function rampOf(palette: Palette, steps = 21): string[] {
  return Array.from({ length: steps }, (_, step) => {
    const share = step / (steps - 1);
    return share < 0.5
      ? mix(palette.low, palette.middle, share * 2)
      : mix(palette.middle, palette.high, share * 2 - 1);
  });
}

const onRamp = (ramp: string[], share: number): string =>
  ramp[Math.round(Math.min(1, Math.max(0, share)) * (ramp.length - 1))] ?? "";

function mean(values: number[]): number {
  return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : -1;
}

function cellOf(cluster: Cluster, node: number, fill: string, value: string): Cell {
  const name = cluster.names[node] ?? "";
  const note = plural(cluster.pods[node] ?? 0, "pod");
  return { fill, rejected: false, picked: false, name, value, note };
}

/** By how much of a resource is requested. */
export function byResource(cluster: Cluster, resource: string, palette: Palette): Coloured {
  const found = cluster.resources.find((each) => each.name === resource);
  const permille = found?.permille ?? cluster.names.map(() => -1);
  const ramp = rampOf(palette);
  return {
    cells: cluster.names.map((_, node) => {
      const value = permille[node] ?? -1;
      const fill = value < 0 ? palette.empty : onRamp(ramp, value / 1000);
      const text = value < 0 ? `no ${resource}` : percent(value);
      return cellOf(cluster, node, fill, text);
    }),
    ramp: { from: "0 %", to: `100 % of ${resource} requested` },
    keys: permille.some((each) => each < 0)
      ? [{ fill: palette.empty, text: `has no ${resource}` }]
      : [],
    headings: (members) => {
      const known = members.map((node) => permille[node] ?? -1).filter((value) => value >= 0);
      const average = known.length ? ` · ${percent(mean(known))}` : "";
      return `${plural(members.length, "node")}${average}`;
    },
    sentence: (node) => {
      const value = permille[node] ?? -1;
      return value < 0 ? `no ${resource}` : `${percent(value)} of ${resource} requested`;
    },
  };
}

function troubles(cluster: Cluster, node: number): string[] {
  const bits = cluster.pressure[node] ?? 0;
  const found = cluster.pressures.filter((_, bit) => bits & (1 << bit));
  if (cluster.unschedulable[node]) found.push("cordoned");
  return found;
}

/** All alike: the answer that would colour them is awaited. */
export function byNothing(cluster: Cluster, palette: Palette): Coloured {
  return {
    cells: cluster.names.map((_, node) => cellOf(cluster, node, palette.empty, "")),
    ramp: null,
    keys: [],
    headings: (members) => plural(members.length, "node"),
    sentence: () => "not judged yet",
  };
}

/** By what keeps pods away: pressure, cordon, other taints. */
export function byPressure(cluster: Cluster, palette: Palette): Coloured {
  const states = cluster.names.map((_, node) => {
    const found = troubles(cluster, node);
    if (found.length) return { fill: palette.warn, text: found.join(", "), bad: true };
    const taints = cluster.taintSets[cluster.taints[node] ?? -1] ?? [];
    if (taints.length) return { fill: palette.middle, text: taints.join(", "), bad: false };
    return { fill: palette.low, text: "healthy", bad: false };
  });
  return {
    cells: states.map(({ fill, text }, node) => cellOf(cluster, node, fill, text)),
    ramp: null,
    keys: [
      { fill: palette.low, text: "healthy" },
      { fill: palette.middle, text: "tainted" },
      { fill: palette.warn, text: "pressure, not ready or cordoned" },
    ],
    headings: (members) => {
      const bad = members.filter((node) => states[node]?.bad).length;
      return bad ? `${count(bad)} of ${plural(members.length, "node")}` : plural(members.length, "node");
    },
    sentence: (node) => states[node]?.text ?? "",
  };
}

export function rejectionText(rejection: Rejection | undefined): string {
  if (!rejection) return "";
  const reasons = rejection.reasons?.join(", ");
  return reasons ? `${rejection.plugin}: ${reasons}` : rejection.plugin;
}

/** By the verdict about one pod: the score where it fits, crossed out where it does not. */
export function byVerdict(cluster: Cluster, verdicts: Verdicts, palette: Palette): Coloured {
  const places = new Map(verdicts.names.map((name, place) => [name, place]));
  const totals = verdicts.total.filter((each) => each !== null);
  const most = totals.reduce((one, other) => Math.max(one, other), 0);
  const least = totals.reduce((one, other) => Math.min(one, other), most);
  const ramp = rampOf(palette);
  const verdictOf = (node: number) => {
    const place = places.get(cluster.names[node] ?? "") ?? -1;
    return { verdict: verdicts.verdict[place] ?? -2, total: verdicts.total[place] ?? null };
  };
  const textOf = (node: number): string => {
    const { verdict, total } = verdictOf(node);
    if (verdict === -2) return "left out before Filter";
    if (verdict >= 0) return rejectionText(verdicts.rejections[verdict]);
    return total === null ? "fits" : `fits, score ${count(total)}`;
  };
  const chosen = verdicts.node || verdicts.chosen;
  return {
    cells: cluster.names.map((name, node) => {
      const { verdict, total } = verdictOf(node);
      const share = total === null || most === least ? 1 : (total - least) / (most - least);
      const cell = cellOf(cluster, node, onRamp(ramp, share), textOf(node));
      return { ...cell, rejected: verdict !== -1, picked: name === chosen };
    }),
    ramp: totals.length ? { from: `score ${count(least)}`, to: count(most) } : null,
    keys: [
      ...(totals.length ? [] : [{ fill: palette.high, text: "fits" }]),
      { fill: palette.rejectMark, text: "rejected", small: true },
    ],
    headings: (members) => {
      const fits = members.filter((node) => verdictOf(node).verdict === -1).length;
      return `${count(fits)} of ${count(members.length)} fit`;
    },
    sentence: textOf,
  };
}
