// One pod: the explanation of stowage explain.

import { dated, plural, requestsText } from "../formats";
import { Awaited, NodeLink, Result } from "../parts/notes";
import { addressOf, at } from "../routing";
import type { Explanation } from "../server/answers";
import { pathOf, useAnswer } from "../server/ask";
import { clusterEpoch } from "../server/live";
import { Explained } from "./explained";

/** The API's path of a pod given as namespace/name. */
export function podPath(pod: string): string {
  return `/api/pods/${pod.split("/").map(encodeURIComponent).join("/")}`;
}

export function PodView({ pod }: { pod: string }) {
  const path = pathOf(podPath(pod), { at: at() });
  const answer = useAnswer<Explanation>(path, clusterEpoch.value).value;
  return (
    <>
      <div class="head-line">
        <h1 tabIndex={-1}>{pod}</h1>
        <a
          class="button"
          href={addressOf("cluster", "", { colour: "verdict", pod })}
        >
          Show on the map
        </a>
      </div>
      <Awaited answer={answer}>
        {(value) => (
          <>
            <Facts explanation={value} />
            <Explained explanation={value} />
          </>
        )}
      </Awaited>
    </>
  );
}

function Facts({ explanation }: { explanation: Explanation }) {
  const { decision, node, requests, priority, created, schedulerName } = explanation;
  return (
    <dl class="facts">
      <div>
        <dt>State</dt>
        <dd>
          {node ? (
            <>
              on <NodeLink node={node} />
            </>
          ) : (
            <Result result={decision.outcome === "Scheduled" ? "pending, fits" : decision.outcome} />
          )}
        </dd>
      </div>
      <div>
        <dt>Requests</dt>
        <dd>{requestsText(requests) || "nothing"}</dd>
      </div>
      <div>
        <dt>Priority</dt>
        <dd class="number">{priority}</dd>
      </div>
      <div>
        <dt>Scheduler</dt>
        <dd>{schedulerName}</dd>
      </div>
      {created && (
        <div>
          <dt>Created</dt>
          <dd class="number">{dated(created)}</dd>
        </div>
      )}
      {!decision.preEnqueue && (
        <div>
          <dt>Judged on</dt>
          <dd>{plural(decision.numNodes, "node")}</dd>
        </div>
      )}
    </dl>
  );
}
