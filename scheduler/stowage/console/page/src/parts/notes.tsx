// What stands in for a view that has nothing to show yet, and small parts that many views share.

import type { ComponentChildren } from "preact";
import { addressOf } from "../routing";
import { podParts } from "../formats";
import type { Answer } from "../server/ask";

/** The answer, or why there is none. An old answer stays on screen under an error. */
export function Awaited<T>({
  answer,
  children,
}: {
  answer: Answer<T>;
  children: (value: T) => ComponentChildren;
}) {
  return (
    <>
      {answer.error && (
        <p class="note bad" role="alert">
          {answer.error.message}
        </p>
      )}
      {answer.value === null && answer.loading && <p class="note">Asking the server …</p>}
      {answer.value !== null && children(answer.value)}
    </>
  );
}

export function PodLink({ pod }: { pod: string }) {
  const [namespace, name] = podParts(pod);
  return (
    <a href={addressOf("pods", pod)} class="name">
      {namespace && <span class="muted">{namespace}/</span>}
      {name}
    </a>
  );
}

export function NodeLink({ node }: { node: string }) {
  return node ? (
    <a href={addressOf("nodes", node)} class="name">
      {node}
    </a>
  ) : (
    <span class="muted">none</span>
  );
}

export function Figure({ label, value, note }: { label: string; value: string; note?: string }) {
  return (
    <div class="figure">
      <dt>{label}</dt>
      <dd class="number">
        {value}
        {note && <small>{note}</small>}
      </dd>
    </div>
  );
}

/** A bar of a share from 0 to 1. */
export function Bar({ share, ink = "--accent" }: { share: number; ink?: string }) {
  const width = `${Math.round(Math.min(1, Math.max(0, share)) * 1000) / 10}%`;
  return (
    <span class="bar" aria-hidden="true">
      <i style={{ width, background: `var(${ink})` }} />
    </span>
  );
}

const RESULTS: Record<string, [string, string]> = {
  scheduled: ["good", "scheduled"],
  unschedulable: ["warn", "unschedulable"],
  error: ["bad", "error"],
  gated: ["plain", "gated"],
  fits: ["good", "fits"],
  "pending, fits": ["good", "pending, fits"],
};

/** An outcome: a word with a mark whose shape differs as well as its colour. */
export function Result({ result }: { result: string }) {
  const [tone, text] = RESULTS[result.toLowerCase()] ?? ["plain", result];
  return <span class={`result ${tone}`}>{text}</span>;
}

export function CopyButton({ text, label }: { text: string; label: string }) {
  return (
    <button
      type="button"
      onClick={(event) => {
        const button = event.currentTarget;
        void navigator.clipboard.writeText(text).then(() => {
          button.textContent = "Copied";
          setTimeout(() => (button.textContent = label), 1500);
        });
      }}
    >
      {label}
    </button>
  );
}
