// One EventSource for everything that changes; it heals, and says when it is broken.

import { signal } from "@preact/signals";

export type Connection = "connecting" | "live" | "broken" | "paused";

export const connection = signal<Connection>("connecting");

/** The longest silence of a healthy connection: the server sends a ping every 15 seconds. */
const SILENCE_MS = 40_000;
const RETRY_MS = 2_000;
const LONGEST_RETRY_MS = 30_000;
/** A hidden page gives its connection back: browsers allow six to a server. */
const HIDDEN_MS = 10_000;

export type Receiver = (event: string, data: unknown) => void;

const EVENTS = ["hello", "reset", "nodes", "refetch", "pending", "decisions", "stats", "source", "ping"];

export class Stream {
  private source: EventSource | null = null;
  private silence = 0;
  private retry = 0;
  private hidden = 0;
  private retryMs = RETRY_MS;

  constructor(
    private readonly path: string,
    private readonly receive: Receiver,
  ) {
    document.addEventListener("visibilitychange", () => this.visibilityChanged());
    addEventListener("online", () => this.open());
    this.open();
  }

  open(): void {
    this.close();
    if (connection.value !== "broken") connection.value = "connecting";
    const source = new EventSource(this.path);
    this.source = source;
    source.onerror = () => this.broken(source);
    for (const name of EVENTS) {
      source.addEventListener(name, (event) => {
        this.heard();
        this.receive(name, JSON.parse((event as MessageEvent<string>).data));
      });
    }
    this.watchSilence();
  }

  private heard(): void {
    this.retryMs = RETRY_MS;
    if (connection.value !== "live") connection.value = "live";
    this.watchSilence();
  }

  private watchSilence(): void {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => {
      connection.value = "broken";
      this.open();
    }, SILENCE_MS);
  }

  /** The browser reconnects by itself, unless the server refused: then we try again later. */
  private broken(source: EventSource): void {
    if (source !== this.source) return;
    connection.value = "broken";
    if (source.readyState !== EventSource.CLOSED) return;
    clearTimeout(this.silence);
    clearTimeout(this.retry);
    this.retry = setTimeout(() => this.open(), this.retryMs);
    this.retryMs = Math.min(this.retryMs * 2, LONGEST_RETRY_MS);
  }

  private close(): void {
    clearTimeout(this.silence);
    clearTimeout(this.retry);
    this.source?.close();
    this.source = null;
  }

  private visibilityChanged(): void {
    clearTimeout(this.hidden);
    if (document.hidden) {
      this.hidden = setTimeout(() => {
        this.close();
        connection.value = "paused";
      }, HIDDEN_MS);
    } else if (this.source === null) {
      this.open();
    }
  }
}
