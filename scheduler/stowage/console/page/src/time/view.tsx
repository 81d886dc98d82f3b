// Time: the life of a recorded or simulated cluster; the map, the queue and the decisions follow.

import { useEffect, useMemo, useState } from "preact/hooks";
import { byResource } from "../cluster/colouring";
import { NodeMap, paletteOf } from "../cluster/map";
import { Legend, mapSettings, useCluster, useHeightBelow, ZONE } from "../cluster/view";
import { clock, count, dated, plural } from "../formats";
import { Chart, type Line } from "../parts/chart";
import { Awaited, Figure, PodLink, Result } from "../parts/notes";
import { addressOf, at, changeSettings, go, setting } from "../routing";
import type { Decisions, Pending, Timeline } from "../server/answers";
import { pathOf, useAnswer } from "../server/ask";
import { theme } from "../theme";

const PODS: Line[] = [
  { label: "pods on nodes", ink: "--series-1" },
  { label: "pending", ink: "--series-2", dash: [5, 3] },
];
const ATTEMPTS: Line[] = [
  { label: "error", ink: "--bad", steps: true, stacked: true },
  { label: "unschedulable", ink: "--map-warn", steps: true, stacked: true },
  { label: "scheduled", ink: "--series-1", steps: true, stacked: true },
];
const PAUSE_MS = 120;
const LISTED = 8;

/** The place of the shown moment in the timeline: the last point that is not after it. */
function placeOf(timeline: Timeline, moment: string): number {
  const { timeS } = timeline.points;
  if (!moment) return timeS.length - 1;
  const wanted = Date.parse(moment) / 1000;
  const after = timeS.findIndex((each) => each > wanted + 0.0005);
  return after < 0 ? timeS.length - 1 : Math.max(0, after - 1);
}

export function TimeView() {
  const answer = useAnswer<Timeline>("/api/timeline", 0).value;
  if (answer.error?.status === 404) {
    return (
      <>
        <div class="head-line">
          <h1 tabIndex={-1}>Time</h1>
        </div>
        <p class="note">
          Only a recording or a simulation has a timeline. Start the console with --from and a
          recording to move in time.
        </p>
      </>
    );
  }
  return (
    <>
      <div class="head-line">
        <h1 tabIndex={-1}>Time</h1>
      </div>
      <Awaited answer={answer}>{(value) => <Scrubbed timeline={value} />}</Awaited>
    </>
  );
}

function Scrubbed({ timeline }: { timeline: Timeline }) {
  const { points, marks } = timeline;
  const [place, setPlace] = useState(() => placeOf(timeline, at()));
  const last = points.time.length - 1;
  const moment = points.time[place] ?? timeline.end;
  useEffect(() => {
    const timer = setTimeout(() => changeSettings({ at: place === last ? "" : moment }), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [place]);
  useEffect(() => {
    if (!at()) setPlace(last);
  }, [at()]);
  const pick = (second: number) => {
    const later = points.timeS.findIndex((each) => each >= second);
    setPlace(later < 0 ? last : later);
  };
  const charts = useMemo((): [string, Line[], number[][]][] => {
    const { placed, pending, error, unschedulable, scheduled } = points;
    return [
      ["Pods", PODS, [placed, pending]],
      ["Attempts", ATTEMPTS, [error, unschedulable, scheduled]],
    ];
  }, [points]);
  const near = marks.filter((each) => each.timeS <= (points.timeS[place] ?? 0)).slice(-3);
  return (
    <>
      <div class="columns charts">
        {charts.map(([label, lines, values]) => (
          <div class="card" key={label}>
            <Chart
              label={label}
              lines={lines}
              x={points.timeS}
              values={values}
              height={150}
              text={count}
              whole
              cursor={points.timeS[place]}
              onPick={pick}
            />
          </div>
        ))}
      </div>
      <div class="scrubber">
        <button type="button" onClick={() => setPlace(Math.max(0, place - 1))} disabled={place === 0}>
          Back
        </button>
        <input
          type="range"
          aria-label="Moment"
          aria-valuetext={dated(moment)}
          min={0}
          max={last}
          value={place}
          onInput={(event) => setPlace(Number(event.currentTarget.value))}
        />
        <button
          type="button"
          onClick={() => setPlace(Math.min(last, place + 1))}
          disabled={place === last}
        >
          Forward
        </button>
      </div>
      <dl class="figures moment">
        <Figure label="Moment" value={dated(moment)} />
        <Figure label="Nodes" value={count(points.nodes[place] ?? 0)} />
        <Figure label="Pods on nodes" value={count(points.placed[place] ?? 0)} />
        <Figure label="Pending" value={count(points.pending[place] ?? 0)} />
      </dl>
      {near.length > 0 && (
        <ul class="marks small muted">
          {near.map((each) => (
            <li key={`${each.timeS} ${each.text}`}>
              <span class="number">{clock(each.time)}</span> {each.text}
            </li>
          ))}
        </ul>
      )}
      <Then />
    </>
  );
}

/** The cluster, the queue and the decisions at the moment that is shown. */
function Then() {
  const cluster = useCluster(setting("group", ZONE));
  const pending = useAnswer<Pending>(pathOf("/api/pending", { limit: LISTED, at: at() }), 0, true).value;
  const decided = useAnswer<Decisions>(
    pathOf("/api/decisions", { limit: LISTED, at: at() }),
    0,
    true,
  ).value;
  const { box, height } = useHeightBelow(1, 320);
  const coloured = useMemo(
    () => cluster.value && byResource(cluster.value, setting("colour", "cpu"), paletteOf()),
    [cluster.value, setting("colour"), theme.value],
  );
  return (
    <div class="beside">
      <section aria-label="Map of the nodes">
        <Awaited answer={cluster}>
          {(value) =>
            coloured && (
              <>
                <Legend coloured={coloured} />
                <div ref={box}>
                  <NodeMap
                    cluster={value}
                    coloured={coloured}
                    picked=""
                    height={height}
                    onOpen={(name) => go(addressOf("nodes", name, mapSettings()))}
                    action="Enter opens the node."
                  />
                </div>
                <p id="map-help" class="unseen">
                  Arrow keys go from node to node, Page Up and Page Down from group to group.
                </p>
              </>
            )
          }
        </Awaited>
      </section>
      <div class="panel">
        <section aria-label="Pending at this moment">
          <h2>{pending.value ? plural(pending.value.total, "pending pod") : "Pending pods"}</h2>
          <ul class="lines">
            {pending.value?.pods.slice(0, LISTED).map((each) => (
              <li key={each.pod}>
                <PodLink pod={each.pod} />
                <span class="muted small cut">{each.reason}</span>
              </li>
            ))}
          </ul>
        </section>
        <section aria-label="Decisions until this moment">
          <h2>Last decisions</h2>
          <ul class="lines">
            {decided.value?.decisions.slice(0, LISTED).map((each) => (
              <li key={each.id}>
                <a class="number" href={addressOf("decisions", each.id)}>
                  {clock(each.time)}
                </a>
                <span class="cut">{each.pod}</span>
                <Result result={each.result} />
              </li>
            ))}
          </ul>
        </section>
      </div>
    </div>
  );
}
