// Scores as bars: plugin by plugin, adding up to a node's total; the runner-up beside the winner.

import { count, plural } from "../formats";
import { NodeLink } from "../parts/notes";
import type { Explanation } from "../server/answers";

const MOST_BARS = 10;

/** Colours by the plugin's place; more plugins than colours begin again. */
const inkOf = (place: number): string => `var(--series-${(place % 9) + 1})`;

/** The node that the pod is on; of a pending pod, the one that it would get. */
function winnerOf({ node, decision, table }: Explanation): string {
  return node || decision.chosen || table.nodes[0] || "";
}

export function ScoreBars({ explanation }: { explanation: Explanation }) {
  const { table } = explanation;
  const scored = Math.min(MOST_BARS, table.plugins[0]?.weighted.length ?? 0);
  const most = Math.max(1, ...table.total.slice(0, scored).map((each) => each ?? 0));
  return (
    <section class="card" aria-label="Scores of the best nodes">
      <h2>Scores of the best nodes</h2>
      <ul class="plugin-keys small">
        {table.plugins.map((each, place) => (
          <li class="key" key={each.plugin}>
            <i style={{ background: inkOf(place) }} />
            {each.plugin}
            {each.weight !== 1 && <span class="muted">×{each.weight}</span>}
          </li>
        ))}
      </ul>
      <ol class="score-bars">
        {table.nodes.slice(0, scored).map((node, place) => {
          const total = table.total[place] ?? 0;
          const parts = table.plugins.map((each) => each.weighted[place] ?? 0);
          const words = table.plugins.map((each, index) => `${each.plugin} ${parts[index]}`);
          return (
            <li key={node} class={node === winnerOf(explanation) ? "chosen" : ""}>
              <span class="cut">
                <NodeLink node={node} />
              </span>
              <span class="stack" role="img" aria-label={`${words.join(", ")}; together ${total}`}>
                {parts.map((value, index) => (
                  <i
                    key={words[index]}
                    title={words[index]}
                    style={{ width: `${(value / most) * 100}%`, background: inkOf(index) }}
                  />
                ))}
              </span>
              <b class="number right">{count(total)}</b>
            </li>
          );
        })}
      </ol>
    </section>
  );
}

/** Plugin by plugin: the winner, the runner-up, and what one has more than the other. */
export function Comparison({ explanation }: { explanation: Explanation }) {
  const { table, runnerUp } = explanation;
  const winner = winnerOf(explanation);
  const first = table.nodes.indexOf(winner);
  const second = runnerUp ? table.nodes.indexOf(runnerUp.node) : -1;
  if (!runnerUp || first < 0 || second < 0) return null;
  return (
    <section class="card" aria-label="Winner and runner-up">
      <h2>Winner and runner-up</h2>
      <p class="muted">
        {runnerUp.behind === 0
          ? `${runnerUp.node} has as many points.`
          : `${runnerUp.node} is ${plural(Math.abs(runnerUp.behind), "point")} ${
              runnerUp.behind > 0 ? "behind" : "ahead"
            }.`}
      </p>
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">Plugin</th>
            <th scope="col">{winner}</th>
            <th scope="col">{runnerUp.node}</th>
            <th scope="col">Ahead</th>
          </tr>
        </thead>
        <tbody>
          {table.plugins.map((each) => {
            const [one = 0, other = 0] = [each.weighted[first], each.weighted[second]];
            return (
              <tr key={each.plugin}>
                <th scope="row">{each.plugin}</th>
                <td>{one}</td>
                <td>{other}</td>
                <td class={one === other ? "muted" : ""}>{signed(one - other)}</td>
              </tr>
            );
          })}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">Total</th>
            <td>{table.total[first]}</td>
            <td>{table.total[second]}</td>
            <td>{signed(runnerUp.behind)}</td>
          </tr>
        </tfoot>
      </table>
    </section>
  );
}

const signed = (value: number): string => (value > 0 ? `+${value}` : value < 0 ? `−${-value}` : "0");
