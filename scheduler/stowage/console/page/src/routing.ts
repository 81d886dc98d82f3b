// The place in the page: every view, pod, node and decision has its own address.

import { signal } from "@preact/signals";

export const VIEWS = ["cluster", "pending", "decisions", "what-if", "time"] as const;
export type View = (typeof VIEWS)[number];
export type Kind = View | "nodes" | "pods";

export interface Route {
  kind: Kind;
  /** The view whose tab is marked. */
  view: View;
  /** The node, the pod (namespace/name) or the decision; empty for a whole view. */
  item: string;
  settings: URLSearchParams;
}

const VIEW_OF: Partial<Record<Kind, View>> = { nodes: "cluster", pods: "pending" };
const KINDS: readonly Kind[] = [...VIEWS, "nodes", "pods"];
/** The settings that go along from view to view. */
const CARRIED = ["at"];

function parse(url: URL): Route {
  const [, name = "", ...rest] = url.pathname.split("/");
  const kind = KINDS.find((each) => each === name) ?? "cluster";
  return {
    kind,
    view: VIEW_OF[kind] ?? (kind as View),
    item: rest.map(decodeURIComponent).join("/"),
    settings: url.searchParams,
  };
}

export const route = signal<Route>(parse(new URL(location.href)));

/** The moment of a recording that all views show; empty for the end. */
export const at = (): string => setting("at");

function follow(): void {
  route.value = parse(new URL(location.href));
}

addEventListener("popstate", follow);
document.addEventListener("click", (event) => {
  const link = event.composedPath().find((each) => each instanceof HTMLAnchorElement);
  if (!link || event.defaultPrevented || event.button !== 0) return;
  if (event.metaKey || event.ctrlKey || event.shiftKey || link.target) return;
  const address = link.getAttribute("href") ?? "";
  if (!address.startsWith("/") || address.startsWith("/static/")) return;
  event.preventDefault();
  go(address);
});

/** The address of something; empty settings are left out. */
export function addressOf(kind: Kind, item = "", settings: Record<string, string> = {}): string {
  const query = new URLSearchParams();
  for (const name of CARRIED) query.set(name, setting(name));
  for (const [name, value] of Object.entries(settings)) query.set(name, value);
  for (const [name, value] of [...query]) if (!value) query.delete(name);
  const path = item ? `/${item.split("/").map(encodeURIComponent).join("/")}` : "";
  return `/${kind}${path}${query.size ? `?${query}` : ""}`;
}

/** Whether the user has gone anywhere in the page; then the focus follows. */
export const moved = signal(false);

/** Goes to an address; the browser's Back returns from it. */
export function go(address: string): void {
  moved.value = true;
  history.pushState(null, "", address);
  follow();
}

/** Changes settings in the address, without a step in the browser's history. */
export function changeSettings(changes: Record<string, string>): void {
  const { kind, item, settings } = route.value;
  const address = addressOf(kind, item, { ...Object.fromEntries(settings), ...changes });
  history.replaceState(null, "", address);
  follow();
}

/** A setting of the address; `otherwise` if it has none of this name, or an empty one. */
export function setting(name: string, otherwise = ""): string {
  return route.value.settings.get(name) || otherwise;
}
