// The changes to try. All but the manifests are in the address, so that a link holds them.

import { signal } from "@preact/signals";
import { at, changeSettings, setting } from "../routing";
import type { WhatIfQuestion } from "../server/answers";

export const manifests = signal("");

export type NodeChange = "cordon" | "drain" | "remove";
export const NODE_CHANGES: NodeChange[] = ["cordon", "drain", "remove"];

const listOf = (name: string): string[] => setting(name).split(",").filter(Boolean);

export const nodesTo = (change: NodeChange): string[] => listOf(change);

/** Cordons, drains or removes a node, or takes this change back. */
export function toggleNode(change: NodeChange, node: string): void {
  const changes = NODE_CHANGES.map((each): [string, string] => {
    const others = nodesTo(each).filter((name) => name !== node);
    const add = each === change && !nodesTo(each).includes(node);
    return [each, (add ? [...others, node] : others).join(",")];
  });
  changeSettings(Object.fromEntries(changes));
}

/** The nodes to add: how many, and like which one. */
export function addedNodes(): { count: number; like: string } | null {
  const [count = "", ...like] = setting("add").split(":");
  return Number(count) > 0 && like.length ? { count: Number(count), like: like.join(":") } : null;
}

export function addNodes(count: number, like: string): void {
  changeSettings({ add: count > 0 ? `${count}:${like}` : "" });
}

/** The weights that differ from the profile's. */
export function weights(): Record<string, number> {
  return Object.fromEntries(
    listOf("weights").map((each) => {
      const [plugin = "", weight = "0"] = each.split("=");
      return [plugin, Number(weight)];
    }),
  );
}

export function setWeight(plugin: string, weight: number | null): void {
  const { [plugin]: _, ...others } = weights();
  const changed = weight === null ? others : { ...others, [plugin]: weight };
  const text = Object.entries(changed).map(([name, value]) => `${name}=${value}`);
  changeSettings({ weights: text.join(",") });
}

/** What the server is asked; fields that change nothing are left out. */
export function question(group: string): WhatIfQuestion {
  const asked: WhatIfQuestion = { group };
  if (manifests.value.trim()) asked.manifests = manifests.value;
  if (nodesTo("cordon").length) asked.cordon = nodesTo("cordon");
  if (nodesTo("drain").length) asked.drain = nodesTo("drain");
  if (nodesTo("remove").length) asked.removeNodes = nodesTo("remove");
  const added = addedNodes();
  if (added) asked.addNodes = added;
  if (Object.keys(weights()).length) asked.weights = weights();
  if (at()) asked.at = at();
  return asked;
}

export function clearAll(): void {
  changeSettings({ cordon: "", drain: "", remove: "", add: "", weights: "" });
}
