// What stands around every view: tabs, the state of the connection, theme, shortcuts.

import { useEffect, useRef } from "preact/hooks";
import { count, dated } from "./formats";
import { addressOf, at, changeSettings, go, route, VIEWS, type View } from "./routing";
import { about, numPending, upstream } from "./server/live";
import { connection } from "./server/stream";
import { theme, toggleTheme } from "./theme";

export const TITLES: Record<View, string> = {
  cluster: "Cluster",
  pending: "Pending",
  decisions: "Decisions",
  "what-if": "What if",
  time: "Time",
};

const SHORTCUTS: [string, string][] = [
  ["1 … 5", "Cluster, Pending, Decisions, What if, Time"],
  ["/", "find, in views that have a field for it"],
  ["← ↑ → ↓", "from node to node in the map, from moment to moment in the timeline"],
  ["Page Up, Page Down", "from group to group in the map"],
  ["Enter", "open the node or the row"],
  ["Esc", "close the panel of a node, leave the editor's field"],
  ["Ctrl+Enter", "in What if: try the changes"],
  ["t", "light or dark"],
  ["?", "this list"],
];

const STATES: Record<string, [string, string]> = {
  connecting: ["plain", "connecting"],
  live: ["good", "live"],
  broken: ["bad", "connection lost, trying again"],
  paused: ["plain", "paused"],
};

/** The views that the source has: Time needs a recording. */
export function shownViews(): View[] {
  return VIEWS.filter((view) => view !== "time" || about.value?.timeline);
}

export function Header({ onHelp }: { onHelp: () => void }) {
  return (
    <header class="top">
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <a class="brand" href={addressOf("cluster")} aria-label="Stowage: the cluster">
        <svg width="22" height="22" viewBox="0 0 22 22" aria-hidden="true">
          <rect x="1" y="12" width="9" height="9" rx="2" fill="currentColor" />
          <rect x="12" y="12" width="9" height="9" rx="2" fill="currentColor" opacity=".55" />
          <rect x="6.500" y="1" width="9" height="9" rx="2" fill="currentColor" opacity=".8" />
        </svg>
        <span>Stowage</span>
      </a>
      <nav aria-label="Views">
        <ul>
          {shownViews().map((view) => (
            <li key={view}>
              <a
                href={addressOf(view)}
                {...(route.value.view === view ? { "aria-current": "page" as const } : {})}
              >
                {TITLES[view]}
                {view === "pending" && numPending.value > 0 && (
                  <span class="badge number">{count(numPending.value)}</span>
                )}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <div class="state">
        <Source />
        <button type="button" class="plain square" onClick={toggleTheme} aria-label={nextTheme()}>
          <span aria-hidden="true">{theme.value === "dark" ? "☀" : "☾"}</span>
        </button>
        <button type="button" class="plain square" onClick={onHelp} aria-label="Keyboard shortcuts">
          <span aria-hidden="true">?</span>
        </button>
      </div>
    </header>
  );
}

const nextTheme = () => (theme.value === "dark" ? "Use the light theme" : "Use the dark theme");

/** What the page shows, and whether it follows its changes. */
function Source() {
  const known = about.value;
  const still = known !== null && !known.live && connection.value === "live";
  const [tone, text] = STATES[connection.value] ?? ["plain", ""];
  return (
    <p class="source small">
      <span class="cut source-name">{known?.source.name}</span>
      <span role="status" class={`result ${still ? "plain" : tone}`}>
        {still ? known.source.kind : text}
      </span>
    </p>
  );
}

/** Lines above the view: what is wrong, and the moment that is shown. */
export function Banners() {
  const { state, message } = upstream.value;
  const moment = at();
  const notes = about.value?.notes ?? [];
  const broken = connection.value === "broken";
  const waits = state === "reconnecting" || state === "failed";
  if (!broken && !waits && !moment && !notes.length) return null;
  return (
    <section aria-label="Notices">
      {broken && (
        <p class="banner bad">
          The connection to the console's server is lost; the page shows what it knew. It connects
          again by itself.
        </p>
      )}
      {waits && (
        <p class="banner warn">
          The server {state === "failed" ? "lost" : "reconnects to"} the cluster: {message}
        </p>
      )}
      {moment && (
        <p class="banner">
          <span>
            All views show <b class="number">{dated(moment)}</b>
          </span>
          <button type="button" onClick={() => changeSettings({ at: "" })}>
            Show the end
          </button>
        </p>
      )}
      {notes.map((each) => (
        <p class="banner" key={each}>
          {each}
        </p>
      ))}
    </section>
  );
}

export function Help({ open, onClose }: { open: boolean; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (open && !dialog.current?.open) dialog.current?.showModal();
    if (!open) dialog.current?.close();
  }, [open]);
  return (
    <dialog ref={dialog} onClose={onClose} aria-labelledby="help-title">
      <div class="panel-head">
        <h2 id="help-title">Keyboard shortcuts</h2>
        <button type="button" class="plain square" onClick={onClose} aria-label="Close">
          <span aria-hidden="true">✕</span>
        </button>
      </div>
      <dl class="shortcuts">
        {SHORTCUTS.map(([keys, text]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <p class="muted small">
        Stowage {about.value?.stowage}. <a href="/static/LICENSES.txt">Licences</a> of the packages in
        this page.
      </p>
    </dialog>
  );
}

function typing(event: KeyboardEvent): boolean {
  const inside = event.composedPath()[0] as HTMLElement;
  return inside.matches?.("input:not([type=range]), select, textarea, [contenteditable=true]");
}

/** Keys of the whole page; a field that is typed in keeps its keys. */
export function useShortcuts(help: boolean, setHelp: (open: boolean) => void): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || typing(event) || help) return;
      const view = shownViews()[Number(event.key) - 1];
      if (event.key === "?") setHelp(true);
      else if (event.key === "t") toggleTheme();
      else if (event.key === "/") document.getElementById("search")?.focus();
      else if (view) go(addressOf(view));
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [help]);
}
