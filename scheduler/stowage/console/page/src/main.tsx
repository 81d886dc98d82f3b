// The page: one view at a time, chosen by the address.

import "uplot/dist/uPlot.min.css";
import "./style/tokens.css";
import "./style/base.css";
import "./style/shell.css";
import "./style/parts.css";
import "./style/views.css";
import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ClusterView } from "./cluster/view";
import { DecisionView } from "./decisions/decision_view";
import { DecisionsView } from "./decisions/view";
import { PendingView } from "./pending/view";
import { PodView } from "./pending/pod_view";
import { at, moved, route } from "./routing";
import type { About, Pending } from "./server/answers";
import { pathOf, useAnswer } from "./server/ask";
import { about, listen, numPending } from "./server/live";
import { Banners, Header, Help, TITLES, useShortcuts } from "./shell";
import { TimeView } from "./time/view";
import { WhatIfView } from "./what_if/view";

function Content() {
  const { kind, item } = route.value;
  if (kind === "pods" && item) return <PodView pod={item} key={item} />;
  if (kind === "pending" || kind === "pods") return <PendingView />;
  if (kind === "decisions") return item ? <DecisionView id={item} key={item} /> : <DecisionsView />;
  if (kind === "what-if") return <WhatIfView />;
  if (kind === "time") return <TimeView />;
  return <ClusterView />;
}

/** Gives the focus to the heading of a view that the user went to; to the map, from a node's panel. */
function useFocusOnArrival(): void {
  const { kind, item, view } = route.value;
  const before = useRef(kind);
  useEffect(() => {
    document.title = `${item || TITLES[view]} · Stowage`;
    const leftPanel = before.current === "nodes" && kind === "cluster";
    before.current = kind;
    if (!moved.peek() || kind === "nodes") return;
    const target = leftPanel ? ".map-cell" : "main h1";
    document.querySelector<HTMLElement>(target)?.focus({ preventScroll: true });
    if (!leftPanel) scrollTo(0, 0);
  }, [kind, item]);
}

/** The number beside the tab; the stream brings later ones. */
function usePendingCount(): void {
  const path = pathOf("/api/pending", { limit: 1, at: at() });
  const total = useAnswer<Pending>(path, 0).value.value?.total;
  useEffect(() => {
    if (total !== undefined) numPending.value = total;
  }, [total]);
}

function Page() {
  const [help, setHelp] = useState(false);
  const known = useAnswer<About>("/api/about", 0).value;
  useEffect(() => {
    if (known.value) about.value = known.value;
  }, [known.value]);
  useEffect(listen, []);
  usePendingCount();
  useShortcuts(help, setHelp);
  useFocusOnArrival();
  return (
    <>
      <Header onHelp={() => setHelp(true)} />
      <Banners />
      <main id="content" tabIndex={-1}>
        {known.error ? (
          <p class="note bad" role="alert">
            {known.error.message}
          </p>
        ) : (
          <Content />
        )}
      </main>
      <Help open={help} onClose={() => setHelp(false)} />
    </>
  );
}

const place = document.getElementById("page");
if (place) render(<Page />, place);
