// The decisions: a live feed, how many a second, how long they take, how they end.

import { useEffect, useMemo } from "preact/hooks";
import { clock, count, duration, durationOfPod } from "../formats";
import { Chart, type Line } from "../parts/chart";
import { Awaited, Figure, NodeLink, PodLink, Result } from "../parts/notes";
import { Table, type Column } from "../parts/table";
import { addressOf, at, changeSettings, setting } from "../routing";
import type { DecisionRow, Decisions, Stats } from "../server/answers";
import { pathOf, useAnswer } from "../server/ask";
import { decisionsEpoch, feed, joinFeed, notSent, stats } from "../server/live";

const COLUMNS: Column<DecisionRow>[] = [
  {
    name: "Time",
    width: "86px",
    cell: (row) => (
      <a class="name number" href={addressOf("decisions", row.id)}>
        <time dateTime={row.time}>{clock(row.time)}</time>
      </a>
    ),
  },
  { name: "Pod", width: "minmax(110px, 1.2fr)", cell: (row) => <PodLink pod={row.pod} /> },
  { name: "Result", width: "128px", cell: (row) => <Result result={row.result} /> },
  {
    name: "Node",
    width: "minmax(110px, 1fr)",
    cell: (row) =>
      row.node ? <NodeLink node={row.node} /> : <span class="muted">{row.message}</span>,
    wide: true,
  },
  {
    name: "Feasible",
    width: "120px",
    cell: (row) =>
      row.exact ? `${count(row.feasibleNodes)} of ${count(row.evaluatedNodes)}` : "",
    numeric: true,
    wide: true,
  },
  {
    name: "Ahead by",
    title: "Points between the winner and the runner-up",
    width: "90px",
    cell: (row) => (row.exact && row.node && row.behind !== null ? count(row.behind) : ""),
    numeric: true,
    wide: true,
  },
  {
    name: "Latency",
    width: "90px",
    cell: (row) => (row.exact ? duration : durationOfPod)(row.latencyS),
    numeric: true,
    wide: true,
  },
];

const OUTCOMES: Line[] = [
  { label: "error", ink: "--bad", steps: true, stacked: true },
  { label: "unschedulable", ink: "--map-warn", steps: true, stacked: true },
  { label: "scheduled", ink: "--series-1", steps: true, stacked: true },
];

const LATENCIES: Line[] = [
  { label: "p99", ink: "--series-2", dash: [5, 3] },
  { label: "p50", ink: "--series-1" },
];

const NO_DECISIONS =
  "No decision is known. A dump has none; of a running cluster they appear as pods get nodes.";

/** The rows that were asked for, with those in front that the stream brought since. */
function useFeed() {
  const result = setting("result");
  const path = pathOf("/api/decisions", { limit: 100, result, at: at() });
  const answer = useAnswer<Decisions>(path, decisionsEpoch.value, true).value;
  const rows = useMemo(() => {
    const live = at() ? [] : feed.value.filter((row) => !result || row.result === result);
    return joinFeed(live, answer.value?.decisions ?? []);
  }, [answer.value, feed.value, result]);
  return { answer, rows };
}

function useStats() {
  const path = pathOf("/api/decisions/stats", { at: at() });
  const answer = useAnswer<Stats>(path, decisionsEpoch.value, true).value;
  useEffect(() => {
    if (answer.value) stats.value = answer.value;
  }, [answer.value]);
  return answer;
}

export function DecisionsView() {
  const { answer, rows } = useFeed();
  const asked = useStats();
  const known = stats.value;
  return (
    <>
      <div class="head-line">
        <h1 tabIndex={-1}>Decisions</h1>
        {known && <Numbers known={known} />}
      </div>
      <Awaited answer={asked}>{() => known && <Charts known={known} />}</Awaited>
      <div class="settings" role="group" aria-label="Filter of the decisions">
        <label>
          Result
          <select
            value={setting("result")}
            onChange={(event) => changeSettings({ result: event.currentTarget.value })}
          >
            <option value="">all</option>
            <option value="scheduled">scheduled</option>
            <option value="unschedulable">unschedulable</option>
            <option value="error">error</option>
          </select>
        </label>
        {notSent.value > 0 && !at() && (
          <p class="muted small">
            {count(notSent.value)} more were made than a page can show; the charts count all.
          </p>
        )}
      </div>
      <Awaited answer={answer}>
        {() => (
          <Table
            label="Decisions, newest first"
            columns={COLUMNS}
            rows={rows}
            keyOf={(row) => row.id}
            address={(row) => addressOf("decisions", row.id)}
            empty={NO_DECISIONS}
            most={16}
          />
        )}
      </Awaited>
    </>
  );
}

function Numbers({ known }: { known: Stats }) {
  const { latencyS, total, latencyOf } = known;
  const [of, text] =
    latencyOf === "pod" ? (["until bound", durationOfPod] as const) : (["latency", duration] as const);
  return (
    <dl class="figures">
      <Figure label="Rate" value={known.rate.toFixed(known.rate < 10 ? 1 : 0)} note="a second" />
      <Figure label={`p50 ${of}`} value={text(latencyS.p50)} />
      <Figure label={`p90 ${of}`} value={text(latencyS.p90)} />
      <Figure label={`p99 ${of}`} value={text(latencyS.p99)} />
      <Figure label="Scheduled" value={count(total.scheduled)} />
      <Figure label="Unschedulable" value={count(total.unschedulable)} />
      <Figure label="Errors" value={count(total.error)} />
    </dl>
  );
}

function Charts({ known }: { known: Stats }) {
  const { buckets, latencyOf } = known;
  const x = useMemo(() => {
    const start = Date.parse(buckets.start) / 1000;
    return buckets.scheduled.map((_, step) => start + step * buckets.stepS);
  }, [buckets]);
  const outcomes = useMemo(
    () => [buckets.error, buckets.unschedulable, buckets.scheduled],
    [buckets],
  );
  const latencies = useMemo(() => [buckets.p99, buckets.p50], [buckets]);
  const { scheduled, unschedulable, error } = known.total;
  if (scheduled + unschedulable + error === 0) return null;
  const step = buckets.stepS === 1 ? "second" : duration(buckets.stepS);
  return (
    <div class="columns charts">
      <div class="card">
        <Chart
          label={`Outcomes, each ${step}`}
          lines={OUTCOMES}
          x={x}
          values={outcomes}
          height={180}
          text={count}
          whole
        />
      </div>
      <div class="card">
        <Chart
          label={latencyOf === "pod" ? "From creation to binding" : "Latency of the algorithm"}
          lines={LATENCIES}
          x={x}
          values={latencies}
          height={180}
          text={(value) => (value === 0 ? "0" : duration(value))}
        />
      </div>
    </div>
  );
}
