// Numbers, amounts and times as text. Times are in UTC, as the API server and the commands have them.

import type { Unit } from "./server/answers";

const INTEGER = new Intl.NumberFormat("en");

export const count = (value: number): string => INTEGER.format(value);

export const plural = (value: number, one: string, many = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : many}`;

export const percent = (permille: number): string =>
  permille < 0 ? "none" : `${Math.round(permille / 10)} %`;

function rounded(value: number): string {
  return value >= 100 ? count(Math.round(value)) : String(Number(value.toPrecision(3)));
}

/** An amount of a resource: cores for cpu, Ki to Ti for bytes. */
export function amount(value: number, unit: Unit): string {
  if (unit === "milli") return rounded(value / 1000);
  if (unit === "count") return count(value);
  const steps = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];
  let step = 0;
  let left = value;
  while (Math.abs(left) >= 1024 && step < steps.length - 1) {
    left /= 1024;
    step += 1;
  }
  return `${rounded(left)}${steps[step]}`;
}

/** The unit of a resource in requests, whose amounts come without one. */
export function unitOf(resource: string): Unit {
  if (resource === "cpu") return "milli";
  return /^(memory|ephemeral-storage|hugepages-.*)$/.test(resource) ? "bytes" : "count";
}

export function requestsText(requests: Record<string, number>): string {
  return Object.entries(requests)
    .map(([name, value]) => `${name} ${amount(value, unitOf(name))}`)
    .join(", ");
}

/** A duration in its two largest units, from microseconds to days. */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return "–";
  if (seconds <= 0) return "0 s";
  if (seconds < 0.001) return `${Math.max(1, Math.round(seconds * 1e6))} µs`;
  if (seconds < 1) return `${Number((seconds * 1e3).toPrecision(2))} ms`;
  if (seconds < 60) return `${Number(seconds.toPrecision(2))} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** The time from a pod's creation, which the API server notes in whole seconds. */
export const durationOfPod = (seconds: number | null | undefined): string =>
  seconds !== null && seconds !== undefined && seconds < 1 ? "< 1 s" : duration(seconds);

/** The time of day; with the date if the day is another one than `day`. */
export function clock(time: string, day = ""): string {
  const text = time.replace("T", " ").replace(/(\.\d+)?Z$/, "");
  return day && !time.startsWith(day.slice(0, 10)) ? text : text.slice(11);
}

export const dated = (time: string): string => `${clock(time, "-")} UTC`;

/** "ns/name" in two parts. */
export function podParts(pod: string): [string, string] {
  const slash = pod.indexOf("/");
  return slash < 0 ? ["", pod] : [pod.slice(0, slash), pod.slice(slash + 1)];
}
