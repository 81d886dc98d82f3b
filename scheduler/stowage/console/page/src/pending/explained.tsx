// The reasoning about one pod, of a pending one as of a placed one, of now as of a recorded decision.

import { count, plural } from "../formats";
import { rejectionText } from "../cluster/colouring";
import { Bar, NodeLink, PodLink } from "../parts/notes";
import type { Explanation, Rejection } from "../server/answers";
import { NodeTableView } from "./node_table";
import { Comparison, ScoreBars } from "./score_bars";

const MOST_LINES = 12;
const MOST_CANDIDATES = 5;

export function Explained({ explanation }: { explanation: Explanation }) {
  const { decision, table, notes, basis, group } = explanation;
  const message = decision.message || explanation.condition;
  const rejection = decision.preEnqueue ?? decision.preFilter;
  return (
    <div class="explained">
      {decision.outcome !== "Scheduled" && message && <p class="note warn">{message}</p>}
      {rejection && !says(message, rejection) && (
        <p class="note warn">{rejectionText(rejection)}</p>
      )}
      {group && (
        <p class="note">
          Pod group {group.group}: {group.text || group.outcome}
        </p>
      )}
      {decision.tie && <p class="note">{decision.tie.text}</p>}
      {decision.viaNomination && <p class="note">It takes the node that it was nominated to.</p>}
      {notes.map((each) => (
        <p class="note" key={each}>
          {each}
        </p>
      ))}
      <div class="columns">
        <Reasons explanation={explanation} />
        <NearMisses explanation={explanation} />
        <PreemptionCard explanation={explanation} />
        <WaitsFor explanation={explanation} />
      </div>
      {table.plugins.length > 0 && (
        <div class="columns wide-first">
          <ScoreBars explanation={explanation} />
          <Comparison explanation={explanation} />
        </div>
      )}
      {!decision.preEnqueue && <NodeTableView explanation={explanation} />}
      <p class="muted small">
        {basis && `${basis[0]?.toUpperCase()}${basis.slice(1)}.`}
        {decision.skippedFilters?.length
          ? ` Filters that do not concern the pod: ${decision.skippedFilters.join(", ")}.`
          : ""}
        {decision.skippedScores?.length
          ? ` Scores that do not concern it: ${decision.skippedScores.join(", ")}.`
          : ""}
      </p>
    </div>
  );
}

/** Whether the scheduler's message has all reasons of a rejection. */
function says(message: string, { reasons = [] }: Rejection): boolean {
  return reasons.length > 0 && reasons.every((each) => message.includes(each));
}

function Reasons({ explanation }: { explanation: Explanation }) {
  const { reasonCounts = {}, numNodes } = explanation.decision;
  const reasons = Object.entries(reasonCounts).sort(([, one], [, other]) => other - one);
  // A recorded decision does not have the number of nodes.
  const all = numNodes || reasons.reduce((sum, [, nodes]) => sum + nodes, 0);
  if (!reasons.length) return null;
  return (
    <section class="card" aria-label="Nodes by reason">
      <h2>Nodes by reason</h2>
      <ul class="rooms reasons">
        {reasons.slice(0, MOST_LINES).map(([reason, nodes]) => (
          <li key={reason}>
            <span>{reason}</span>
            <Bar share={nodes / all} ink="--map-warn" />
            <span class="number right">{count(nodes)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function NearMisses({ explanation }: { explanation: Explanation }) {
  const misses = explanation.decision.nearMisses ?? [];
  if (!misses.length) return null;
  return (
    <section class="card" aria-label="Nearest misses">
      <h2>Nearest misses</h2>
      <ul class="lines">
        {misses.slice(0, MOST_LINES).map((each) => (
          <li key={each.text}>
            <span>It {each.text}</span>
            <span class="muted small">
              {each.plugin}: {each.nodes.slice(0, 3).map((node) => (
                <span key={node}>
                  <NodeLink node={node} />{" "}
                </span>
              ))}
              {each.numNodes > 3 && `and ${plural(each.numNodes - 3, "other")}`}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function PreemptionCard({ explanation }: { explanation: Explanation }) {
  const { preemption } = explanation.decision;
  if (!preemption) return null;
  const { candidates = [], nominatedNode, message, numCandidates = candidates.length } = preemption;
  return (
    <section class="card" aria-label="Preemption">
      <h2>Preemption</h2>
      {candidates.length === 0 && <p class="muted">{message || "It would not help."}</p>}
      <ul class="lines">
        {candidates.slice(0, MOST_CANDIDATES).map((each) => (
          <li key={each.node}>
            <span>
              <NodeLink node={each.node} />
              {each.node === nominatedNode && <span class="tag">chosen</span>}
            </span>
            <span class="small">
              evicts{" "}
              {each.victims.slice(0, 4).map((pod) => (
                <span key={pod}>
                  <PodLink pod={pod} />{" "}
                </span>
              ))}
              {each.victims.length > 4 && `and ${count(each.victims.length - 4)} more`}
              {each.pdbViolations ? ` (violates ${plural(each.pdbViolations, "budget")})` : ""}
            </span>
          </li>
        ))}
      </ul>
      {numCandidates > MOST_CANDIDATES && (
        <p class="muted small">
          {plural(numCandidates - MOST_CANDIDATES, "more candidate")}
        </p>
      )}
    </section>
  );
}

function WaitsFor({ explanation }: { explanation: Explanation }) {
  const waits = explanation.decision.waitsFor ?? [];
  if (!waits.length) return null;
  return (
    <section class="card" aria-label="Waits for">
      <h2>Waits for</h2>
      <ul class="lines">
        {waits.map((each) => (
          <li key={each.plugin}>
            <span>{each.plugin}</span>
            <span class="muted small">{each.events.join(", ")}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
