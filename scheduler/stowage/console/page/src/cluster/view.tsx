// The cluster: every node as a cell of a map.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { count, percent, plural } from "../formats";
import { Awaited, Bar, Figure, Result } from "../parts/notes";
import { PodChooser } from "../parts/pod_chooser";
import { addressOf, at, changeSettings, go, route, setting } from "../routing";
import type { Cluster, Verdicts } from "../server/answers";
import { pathOf, useAnswer, type Answer } from "../server/ask";
import { clusterEpoch, nodeChanges, withChanges } from "../server/live";
import { theme } from "../theme";
import { byNothing, byPressure, byResource, byVerdict, type Coloured } from "./colouring";
import { NodeMap, paletteOf } from "./map";
import { NodePanel } from "./node_panel";

export const ZONE = "topology.kubernetes.io/zone";
const PRESSURE = "pressure";
const VERDICT = "verdict";

/** The cluster as it was asked for, with the changes that the stream brought since. */
export function useCluster(group: string) {
  const path = pathOf("/api/cluster", { group, at: at() });
  const answer = useAnswer<Cluster>(path, clusterEpoch.value, true);
  const [changed, setChanged] = useState<Cluster | null>(null);
  const asked = answer.value.value;
  useEffect(() => {
    setChanged(asked);
  }, [asked]);
  const news = nodeChanges.value;
  useEffect(() => {
    if (news && !at()) setChanged((before) => before && withChanges(before, news));
  }, [news]);
  return { ...answer.value, value: changed };
}

/** The height that is left for the map under what stands above it. */
export function useHeightBelow(share = 1, least = 260) {
  const box = useRef<HTMLDivElement>(null);
  const [height, setHeight] = useState(480);
  useEffect(() => {
    const measure = () => {
      const top = (box.current?.getBoundingClientRect().top ?? 0) + scrollY;
      setHeight(Math.max(least, Math.floor((innerHeight - top - 28) * share)));
    };
    const watch = new ResizeObserver(measure);
    watch.observe(document.body);
    addEventListener("resize", measure);
    return () => {
      watch.disconnect();
      removeEventListener("resize", measure);
    };
  }, []);
  return { box, height };
}

/** The verdicts about the pod that the address names. */
function useVerdicts(): Answer<Verdicts> {
  const pod = setting("pod");
  const wanted = setting("colour") === VERDICT && pod;
  const path = wanted ? pathOf("/api/verdicts", { pod, at: at() }) : null;
  return useAnswer<Verdicts>(path, clusterEpoch.value).value;
}

/** The colours that the address asks for. */
function useColoured(cluster: Cluster | null, verdicts: Verdicts | null): Coloured | null {
  const chosen = setting("colour", "cpu");
  return useMemo(() => {
    if (!cluster) return null;
    const palette = paletteOf();
    if (chosen === PRESSURE) return byPressure(cluster, palette);
    if (chosen === VERDICT && verdicts) return byVerdict(cluster, verdicts, palette);
    if (chosen === VERDICT) return byNothing(cluster, palette);
    return byResource(cluster, chosen, palette);
  }, [cluster, chosen, verdicts, theme.value]);
}

export function ClusterView() {
  const cluster = useCluster(setting("group", ZONE));
  const verdicts = useVerdicts();
  const coloured = useColoured(cluster.value, verdicts.value);
  const { box, height } = useHeightBelow();
  const node = route.value.kind === "nodes" ? route.value.item : "";
  return (
    <>
      <div class="head-line">
        <h1 tabIndex={-1}>Cluster</h1>
        {cluster.value && <Sums cluster={cluster.value} />}
      </div>
      {cluster.value && <Settings cluster={cluster.value} />}
      <Awaited answer={cluster}>
        {(value) => (
          <div class={node ? "beside" : ""}>
            <section aria-label="Map of the nodes">
              <VerdictLine verdicts={verdicts} />
              {coloured && <Legend coloured={coloured} />}
              <div ref={box}>
                {coloured && (
                  <NodeMap
                    cluster={value}
                    coloured={coloured}
                    picked={node}
                    find={setting("find")}
                    height={height}
                    onOpen={(name) => go(addressOf("nodes", name, mapSettings()))}
                    action="Enter opens the node."
                  />
                )}
              </div>
              <p id="map-help" class="unseen">
                Arrow keys go from node to node, Page Up and Page Down from group to group.
              </p>
            </section>
            {node && <NodePanel node={node} close={addressOf("cluster", "", mapSettings())} />}
          </div>
        )}
      </Awaited>
    </>
  );
}

/** The settings of the map, which stay when a node is opened. */
export function mapSettings(): Record<string, string> {
  return Object.fromEntries(["group", "colour", "pod", "find"].map((name) => [name, setting(name)]));
}

function Sums({ cluster }: { cluster: Cluster }) {
  const used = cluster.resources.filter((each) => each.allocatable > 0).slice(0, 4);
  return (
    <dl class="figures">
      <Figure label="Nodes" value={count(cluster.summary.nodes)} />
      <Figure label="Pods on nodes" value={count(cluster.summary.placed)} />
      <Figure label="Pending" value={count(cluster.summary.pending)} />
      {used.map((each) => (
        <div class="figure" key={each.name}>
          <dt>{each.name}</dt>
          <dd class="number">
            {percent((each.requested / each.allocatable) * 1000)}
            <Bar share={each.requested / each.allocatable} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Settings({ cluster }: { cluster: Cluster }) {
  const group = setting("group", ZONE);
  const colour = setting("colour", "cpu");
  const keys = cluster.labelKeys.map((each) => each.key);
  return (
    <div class="settings" role="group" aria-label="Settings of the map">
      <label>
        Group by
        <select value={group} onChange={(event) => changeSettings({ group: event.currentTarget.value })}>
          {[...new Set([ZONE, group, ...keys])].map((key) => (
            <option key={key} value={key}>
              {key}
            </option>
          ))}
        </select>
      </label>
      <label>
        Colour by
        <select
          value={colour}
          onChange={(event) => changeSettings({ colour: event.currentTarget.value })}
        >
          <optgroup label="Utilisation">
            {cluster.resources.map((each) => (
              <option key={each.name} value={each.name}>
                {each.name}
              </option>
            ))}
          </optgroup>
          <optgroup label="State">
            <option value={PRESSURE}>pressure and taints</option>
            <option value={VERDICT}>verdict for a pod</option>
          </optgroup>
        </select>
      </label>
      {colour === VERDICT && (
        <PodChooser label="Pod" pod={setting("pod")} onChoose={(pod) => changeSettings({ pod })} />
      )}
      <label class="find">
        Find
        <input
          type="search"
          id="search"
          placeholder="node name"
          value={setting("find")}
          onInput={(event) => changeSettings({ find: event.currentTarget.value })}
          onKeyDown={(event) => {
            const found = cluster.names.find((name) => name.includes(event.currentTarget.value));
            if (event.key === "Enter" && found) go(addressOf("nodes", found, mapSettings()));
          }}
        />
      </label>
    </div>
  );
}

/** The outcome for the chosen pod, in a sentence. */
function VerdictLine({ verdicts }: { verdicts: Answer<Verdicts> }) {
  const pod = setting("pod");
  if (setting("colour") !== VERDICT) return null;
  if (!pod) return <p class="note">Choose a pod: each node then shows the verdict about it.</p>;
  return (
    <Awaited answer={verdicts}>
      {(value) => (
        <p class="verdict">
          <Result result={value.outcome === "Scheduled" && !value.node ? "fits" : value.outcome} />
          <span>
            {value.outcome === "Scheduled"
              ? `${value.node ? `on ${value.node}` : `best node ${value.chosen}`}; it fits on ${plural(
                  value.verdict.filter((each) => each === -1).length,
                  "node",
                )}`
              : value.message}
          </span>
          <a href={addressOf("pods", pod)}>Explain</a>
        </p>
      )}
    </Awaited>
  );
}

export function Legend({ coloured }: { coloured: Coloured }) {
  const { ramp, keys } = coloured;
  return (
    <p class="legend small">
      {ramp && (
        <span class="key">
          {ramp.from}
          <i class="ramp" />
          {ramp.to}
        </span>
      )}
      {keys.map((each) => (
        <span class="key" key={each.text}>
          <i class={each.small ? "small-cell" : ""} style={{ background: each.fill }} />
          {each.text}
        </span>
      ))}
    </p>
  );
}
