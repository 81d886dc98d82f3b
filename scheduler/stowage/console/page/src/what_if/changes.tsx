// Changes of nodes, as chips that can be taken back, and of plugin weights, as sliders.

import { about } from "../server/live";
import {
  addedNodes,
  addNodes,
  NODE_CHANGES,
  nodesTo,
  setWeight,
  toggleNode,
  weights,
  type NodeChange,
} from "./question";

export type Tool = NodeChange | "add";

const TOOLS: [Tool, string][] = [
  ["cordon", "cordons it"],
  ["drain", "drains it"],
  ["remove", "removes it"],
  ["add", "adds one like it"],
];

interface ChangesProps {
  tool: Tool;
  onTool: (tool: Tool) => void;
}

export function Changes({ tool, onTool }: ChangesProps) {
  const added = addedNodes();
  return (
    <section aria-label="Nodes">
      <h2>Nodes</h2>
      <fieldset class="tools">
        <legend class="muted small">A click on a node of the map before</legend>
        {TOOLS.map(([name, text]) => (
          <label key={name}>
            <input
              type="radio"
              name="tool"
              value={name}
              checked={tool === name}
              onChange={() => onTool(name)}
            />
            <span>{text}</span>
          </label>
        ))}
      </fieldset>
      <ul class="chips">
        {NODE_CHANGES.flatMap((change) =>
          nodesTo(change).map((node) => (
            <li key={`${change} ${node}`}>
              <Chip text={`${change} ${node}`} onRemove={() => toggleNode(change, node)} />
            </li>
          )),
        )}
        {added && (
          <li>
            <Chip
              text={`add ${added.count} like ${added.like}`}
              onRemove={() => addNodes(0, added.like)}
            />
          </li>
        )}
      </ul>
    </section>
  );
}

function Chip({ text, onRemove }: { text: string; onRemove: () => void }) {
  return (
    <span class="chip">
      <span class="cut">{text}</span>
      <button type="button" class="plain" onClick={onRemove} aria-label={`Take back: ${text}`}>
        <span aria-hidden="true">✕</span>
      </button>
    </span>
  );
}

/** The slider's end; a larger weight of the profile moves it. */
const MOST_WEIGHT = 20;

export function Weights() {
  const profile = about.value?.profiles[0];
  if (!profile) return null;
  const changed = weights();
  return (
    <section aria-label="Weights">
      <h2>Weights</h2>
      <ul class="weights">
        {profile.scores.map(({ plugin, weight }) => {
          const value = changed[plugin] ?? weight;
          return (
            <li key={plugin} class={value === weight ? "" : "changed"}>
              <label for={`weight-${plugin}`} class="cut">
                {plugin}
              </label>
              <input
                id={`weight-${plugin}`}
                type="range"
                min={0}
                max={Math.max(MOST_WEIGHT, weight)}
                value={value}
                onInput={(event) => {
                  const chosen = Number(event.currentTarget.value);
                  setWeight(plugin, chosen === weight ? null : chosen);
                }}
              />
              <output for={`weight-${plugin}`} class="number right">
                {value}
                {value !== weight && <span class="muted"> was {weight}</span>}
              </output>
            </li>
          );
        })}
      </ul>
    </section>
  );
}
