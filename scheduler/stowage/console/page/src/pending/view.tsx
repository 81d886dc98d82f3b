// The pending pods: why, since when, and what each waits for.

import { useState } from "preact/hooks";
import { count, dated, duration } from "../formats";
import { Awaited, Figure, PodLink } from "../parts/notes";
import { Table, type Column } from "../parts/table";
import { addressOf, at, changeSettings, setting } from "../routing";
import type { Pending, PendingPod, Wakeup } from "../server/answers";
import { pathOf, useAnswer } from "../server/ask";
import { pendingEpoch } from "../server/live";

const STEP = 200;
const SORTS = { since: "time", pod: "name", priority: "priority", reason: "reason" };

/** The events that a pod waits for, without the plugins that name them. */
export function waitsForText(waits: Wakeup[]): string {
  return [...new Set(waits.flatMap((each) => each.events))].join(", ");
}

function reasonOf(row: PendingPod): string {
  if (row.reason) return row.reason;
  return row.reasonFrom === "none" ? "not judged yet: open the pod" : "";
}

/** What a narrow screen has no columns for: the queue, and the events that the pod waits for. */
function queueText(row: PendingPod): string {
  const events = waitsForText(row.waitsFor);
  return events ? `${row.queue}; waits for ${events}` : row.queue;
}

const COLUMNS: Column<PendingPod>[] = [
  { name: "Pod", width: "minmax(96px, 0.9fr)", cell: (row) => <PodLink pod={row.pod} /> },
  {
    name: "Reason",
    width: "minmax(112px, 2fr)",
    cell: (row) => (
      <>
        <span title={reasonOf(row)}>{reasonOf(row)}</span>
        <span class="narrow-only muted small">{queueText(row)}</span>
      </>
    ),
  },
  {
    name: "Pending for",
    width: "92px",
    cell: (row) => (
      <time dateTime={row.since} title={row.since && dated(row.since)}>
        {duration(row.pendingS)}
      </time>
    ),
    numeric: true,
  },
  {
    name: "Queue",
    width: "110px",
    cell: (row) => row.queue,
    wide: true,
  },
  {
    name: "Waits for",
    width: "minmax(140px, 1fr)",
    cell: (row) => {
      const text = waitsForText(row.waitsFor);
      return (
        <span class="muted" title={text}>
          {text}
        </span>
      );
    },
    wide: true,
  },
  { name: "Priority", width: "92px", cell: (row) => count(row.priority), numeric: true, wide: true },
];

export function PendingView() {
  const [limit, setLimit] = useState(STEP);
  const query = { q: setting("q"), sort: setting("sort"), limit, at: at() };
  const answer = useAnswer<Pending>(pathOf("/api/pending", query), pendingEpoch.value, true).value;
  return (
    <>
      <div class="head-line">
        <h1 tabIndex={-1}>Pending pods</h1>
        {answer.value && (
          <dl class="figures">
            <Figure label="All" value={count(answer.value.total)} />
            {Object.entries(answer.value.queues).map(([queue, pods]) => (
              <Figure key={queue} label={queue} value={count(pods)} />
            ))}
          </dl>
        )}
      </div>
      <div class="settings" role="group" aria-label="Settings of the list">
        <label>
          Sort by
          <select
            value={setting("sort", "since")}
            onChange={(event) => changeSettings({ sort: event.currentTarget.value })}
          >
            {Object.entries(SORTS).map(([key, text]) => (
              <option key={key} value={key}>
                {text}
              </option>
            ))}
          </select>
        </label>
        <label class="find">
          Find
          <input
            type="search"
            id="search"
            placeholder="pod or reason"
            value={setting("q")}
            onInput={(event) => changeSettings({ q: event.currentTarget.value })}
          />
        </label>
      </div>
      <Awaited answer={answer}>
        {(value) => (
          <>
            <Table
              label="Pending pods"
              columns={COLUMNS}
              rows={value.pods}
              keyOf={(row) => row.pod}
              address={(row) => addressOf("pods", row.pod)}
              empty={value.total ? "No pending pod matches." : "Every pod has a node."}
              most={18}
              narrowHeight={104}
            />
            {value.pods.length < value.matching && (
              <p class="more">
                <span class="muted">
                  {count(value.pods.length)} of {count(value.matching)}
                </span>
                {limit < 1000 && (
                  <button type="button" onClick={() => setLimit(limit + STEP)}>
                    Show more
                  </button>
                )}
              </p>
            )}
          </>
        )}
      </Awaited>
    </>
  );
}
