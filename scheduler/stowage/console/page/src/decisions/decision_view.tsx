// One decision: node by node, plugin by plugin.

import { count, dated, duration, durationOfPod } from "../formats";
import { Awaited, NodeLink, PodLink, Result } from "../parts/notes";
import { Explained } from "../pending/explained";
import { addressOf, at } from "../routing";
import type { DecisionDetail } from "../server/answers";
import { pathOf, useAnswer } from "../server/ask";

export function DecisionView({ id }: { id: string }) {
  const path = pathOf(`/api/decisions/${encodeURIComponent(id)}`, { at: at() });
  const answer = useAnswer<DecisionDetail>(path, 0).value;
  return (
    <>
      <div class="head-line">
        <h1 tabIndex={-1}>
          Decision{answer.value && ` about ${answer.value.decision.pod}`}
        </h1>
        <a class="button" href={addressOf("decisions")}>
          All decisions
        </a>
      </div>
      <Awaited answer={answer}>
        {(value) => (
          <>
            <Facts row={value.decision} />
            {!value.decision.exact && (
              <p class="note">
                This decision was seen from outside, as a binding; its scores are evaluated now.
              </p>
            )}
            <Explained explanation={value.explanation} />
          </>
        )}
      </Awaited>
    </>
  );
}

function Facts({ row }: { row: DecisionDetail["decision"] }) {
  return (
    <dl class="facts">
      <div>
        <dt>Result</dt>
        <dd>
          <Result result={row.result} />
        </dd>
      </div>
      <div>
        <dt>Pod</dt>
        <dd>
          <PodLink pod={row.pod} />
        </dd>
      </div>
      {row.node && (
        <div>
          <dt>Node</dt>
          <dd>
            <NodeLink node={row.node} />
          </dd>
        </div>
      )}
      {row.nominatedNode && (
        <div>
          <dt>Nominated</dt>
          <dd>
            <NodeLink node={row.nominatedNode} />
          </dd>
        </div>
      )}
      <div>
        <dt>Time</dt>
        <dd class="number">{dated(row.time)}</dd>
      </div>
      <div>
        <dt>Latency</dt>
        <dd class="number">{(row.exact ? duration : durationOfPod)(row.latencyS)}</dd>
      </div>
      {row.exact && (
        <div>
          <dt>Feasible</dt>
          <dd class="number">
            {count(row.feasibleNodes)} of {count(row.evaluatedNodes)} nodes
          </dd>
        </div>
      )}
      {row.attempt > 0 && (
        <div>
          <dt>Attempt</dt>
          <dd class="number">{row.attempt}</dd>
        </div>
      )}
    </dl>
  );
}
