// What if: changes on the left, the cluster before and after them on the right.

import { useEffect, useRef, useState } from "preact/hooks";
import { byResource } from "../cluster/colouring";
import { NodeMap, paletteOf } from "../cluster/map";
import { Legend, useCluster, ZONE } from "../cluster/view";
import { Awaited } from "../parts/notes";
import { changeSettings, setting } from "../routing";
import type { Cluster, WhatIf } from "../server/answers";
import { ask, AskError, type Answer } from "../server/ask";
import { theme } from "../theme";
import { Changes, Weights, type Tool } from "./changes";
import { Differences } from "./differences";
import { ManifestEditor } from "./manifest_editor";
import { addedNodes, addNodes, clearAll, NODE_CHANGES, nodesTo, question, toggleNode } from "./question";

const NOTHING: Answer<WhatIf> = { value: null, error: null, loading: false };

/** The answer to the last question; `run` asks, and gives up the question before. */
function useWhatIf() {
  const [answer, setAnswer] = useState<Answer<WhatIf>>(NOTHING);
  const asked = useRef<AbortController | null>(null);
  useEffect(() => () => asked.current?.abort(), []);
  const run = () => {
    asked.current?.abort();
    const controller = new AbortController();
    asked.current = controller;
    setAnswer((before) => ({ ...before, error: null, loading: true }));
    ask<WhatIf>("/api/what-if", controller.signal, question(setting("group", ZONE))).then(
      (value) => setAnswer({ value, error: null, loading: false }),
      (error: unknown) => {
        if (controller.signal.aborted) return;
        const known = error instanceof AskError ? error : new AskError(String(error), 0);
        setAnswer((before) => ({ value: before.value, error: known, loading: false }));
      },
    );
  };
  const clear = () => {
    asked.current?.abort();
    setAnswer(NOTHING);
  };
  return { answer, run, clear };
}

const PAUSE_MS = 400;

/** After the first try, each change is tried by itself a moment later. */
function useFollow(asked: string, has: boolean, run: () => void): void {
  const tried = useRef(asked);
  useEffect(() => {
    if (!has || tried.current === asked) return undefined;
    const timer = setTimeout(() => {
      tried.current = asked;
      run();
    }, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [asked]);
}

export function WhatIfView() {
  const { answer, run, clear } = useWhatIf();
  const asked = JSON.stringify({ ...question(setting("group", ZONE)), manifests: "" });
  useFollow(asked, answer.value !== null, run);
  const [tool, setTool] = useState<Tool>("drain");
  const cluster = useCluster(setting("group", ZONE));
  const before = answer.value?.maps.before ?? cluster.value;
  const after = answer.value?.maps.after ?? null;
  const picked = (node: string) => {
    if (tool === "add") addNodes((addedNodes()?.like === node ? (addedNodes()?.count ?? 0) : 0) + 1, node);
    else toggleNode(tool, node);
  };
  return (
    <>
      <div class="head-line">
        <h1 tabIndex={-1}>What if</h1>
        <div class="buttons">
          <button
            type="button"
            onClick={() => {
              clearAll();
              clear();
            }}
          >
            Take all back
          </button>
          <button type="button" class="first" onClick={run} aria-keyshortcuts="Control+Enter">
            {answer.loading ? "Trying …" : "Try the changes"}
          </button>
        </div>
      </div>
      <div
        class="what-if"
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run();
        }}
      >
        <div class="changes">
          <ManifestEditor errors={answer.error?.errors ?? []} onRun={run} />
          <Changes tool={tool} onTool={setTool} />
          <Weights />
        </div>
        <div class="results">
          <Colours cluster={before} />
          <div class="maps">
            <OneMap title="Before" cluster={before} other={after} onOpen={picked} tool={tool} />
            {after && <OneMap title="After" cluster={after} other={before} />}
          </div>
          <Awaited answer={cluster}>{() => null}</Awaited>
          <Awaited answer={answer}>
            {(value) => <Differences answer={value} />}
          </Awaited>
          {!answer.value && !answer.loading && !answer.error && (
            <p class="muted">
              Write manifests, change weights, or click nodes; then try the changes. The cluster is
              only read: the scheduler decides about a copy of it. Later changes of nodes and weights are tried
              at once.
            </p>
          )}
        </div>
      </div>
    </>
  );
}

function Colours({ cluster }: { cluster: Cluster | null }) {
  if (!cluster) return null;
  return (
    <div class="settings" role="group" aria-label="Settings of the maps">
      <label>
        Colour by
        <select
          value={setting("colour", "cpu")}
          onChange={(event) => changeSettings({ colour: event.currentTarget.value })}
        >
          {cluster.resources.map((each) => (
            <option key={each.name} value={each.name}>
              {each.name}
            </option>
          ))}
        </select>
      </label>
      <label>
        Group by
        <select
          value={setting("group", ZONE)}
          onChange={(event) => changeSettings({ group: event.currentTarget.value })}
        >
          {[...new Set([ZONE, ...cluster.labelKeys.map((each) => each.key)])].map((key) => (
            <option key={key}>{key}</option>
          ))}
        </select>
      </label>
    </div>
  );
}

/** The nodes to outline: those that a change names, and those that are different in `other`. */
function changedNodes(cluster: Cluster, other: Cluster | null): Set<string> {
  const changed = new Set(NODE_CHANGES.flatMap((each) => nodesTo(each)));
  if (!other) return changed;
  const places = new Map(other.names.map((name, place) => [name, place]));
  cluster.names.forEach((name, node) => {
    const place = places.get(name);
    const same =
      place !== undefined &&
      cluster.pods[node] === other.pods[place] &&
      cluster.resources.every(
        (each, at) => each.permille[node] === other.resources[at]?.permille[place],
      );
    if (!same) changed.add(name);
  });
  return changed;
}

interface OneMapProps {
  title: string;
  cluster: Cluster | null;
  /** The other map: nodes that differ from it are outlined. */
  other: Cluster | null;
  tool?: Tool;
  onOpen?: (node: string) => void;
}

const ACTIONS: Record<Tool, string> = {
  cordon: "Enter cordons it, or takes it back.",
  drain: "Enter drains it, or takes it back.",
  remove: "Enter removes it, or takes it back.",
  add: "Enter adds a node like it.",
};

function OneMap({ title, cluster, other, tool, onOpen }: OneMapProps) {
  if (!cluster) return null;
  void theme.value;
  const plain = byResource(cluster, setting("colour", "cpu"), paletteOf());
  const outlined = changedNodes(cluster, other);
  const cells = plain.cells.map((cell) => {
    if (!outlined.has(cell.name)) return cell;
    const how = NODE_CHANGES.find((each) => nodesTo(each).includes(cell.name));
    return { ...cell, picked: true, value: how ? `${cell.value}, ${how}` : cell.value };
  });
  return (
    <section class="card" aria-label={title}>
      <h2>{title}</h2>
      <Legend coloured={plain} />
      <NodeMap
        cluster={cluster}
        coloured={{ ...plain, cells }}
        picked=""
        height={300}
        onOpen={onOpen ?? (() => undefined)}
        action={tool ? ACTIONS[tool] : ""}
        compact
      />
      {tool && (
        <p id="map-help" class="unseen">
          Arrow keys go from node to node, Page Up and Page Down from group to group.
        </p>
      )}
    </section>
  );
}
