// Questions to the server, and a hook that keeps an answer of it on screen.

import { useSignal, type ReadonlySignal, type Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { LineError } from "./answers";

/** The server refused or could not answer; `errors` are by line, for YAML. */
export class AskError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly errors: LineError[] = [],
  ) {
    super(message);
  }
}

const MESSAGES: Record<number, string> = {
  401: "This address has no valid token. Open the address that the command printed.",
};

async function failureOf(response: Response): Promise<AskError> {
  const known = MESSAGES[response.status];
  const body = (await response.json().catch(() => null)) as {
    error?: { message?: string; errors?: LineError[] };
  } | null;
  const message = known ?? body?.error?.message ?? `The server answered ${response.status}.`;
  return new AskError(message, response.status, body?.error?.errors ?? []);
}

/** Asks once more after a second while the server is still reading the cluster (503). */
export async function ask<T>(path: string, signal: AbortSignal, body?: unknown): Promise<T> {
  for (;;) {
    const response = await fetch(path, {
      signal,
      ...(body === undefined
        ? {}
        : {
            method: "POST",
            headers: { "Content-Type": "application/json" },
            body: JSON.stringify(body),
          }),
    }).catch((error: unknown) => {
      if (signal.aborted) throw error;
      throw new AskError("The console's server does not answer. Is the command still running?", 0);
    });
    if (response.ok) return (await response.json()) as T;
    if (response.status !== 503) throw await failureOf(response);
    await new Promise((resolve) => setTimeout(resolve, 1000));
    signal.throwIfAborted();
  }
}

export function pathOf(path: string, query: Record<string, string | number | undefined>): string {
  const known = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const text = new URLSearchParams(known.map(([key, value]) => [key, String(value)])).toString();
  return text ? `${path}?${text}` : path;
}

export interface Answer<T> {
  value: T | null;
  error: AskError | null;
  loading: boolean;
}

/** The question that a hook asks: it is asked again after an answer, never while one is awaited, so
 *  that a slow answer is not given up for each change. */
class Question<T> {
  private controller: AbortController | null = null;
  private again = false;

  constructor(
    private readonly path: string,
    private readonly answer: Signal<Answer<T>>,
  ) {}

  ask(): void {
    if (this.controller) {
      this.again = true;
      return;
    }
    const controller = new AbortController();
    this.controller = controller;
    this.answer.value = { ...this.answer.peek(), loading: true };
    ask<T>(this.path, controller.signal).then(
      (value) => this.answered({ value, error: null, loading: false }),
      (error: unknown) => {
        if (controller.signal.aborted) return;
        const known = error instanceof AskError ? error : new AskError(String(error), 0);
        this.answered({ value: this.answer.peek().value, error: known, loading: false });
      },
    );
  }

  private answered(answer: Answer<T>): void {
    this.controller = null;
    this.answer.value = answer;
    if (this.again) {
      this.again = false;
      this.ask();
    }
  }

  stop(): void {
    this.again = false;
    this.controller?.abort();
  }
}

/** Keeps the answer of a path; a change of `epoch` asks again. The old answer stays meanwhile, the
 *  answer of another path only if `keep` says that it is still of use. */
export function useAnswer<T>(
  path: string | null,
  epoch: number,
  keep = false,
): ReadonlySignal<Answer<T>> {
  const answer = useSignal<Answer<T>>({ value: null, error: null, loading: path !== null });
  const question = useRef<Question<T> | null>(null);
  useEffect(() => {
    const value = keep && path !== null ? answer.peek().value : null;
    answer.value = { value, error: null, loading: path !== null };
    if (path === null) return undefined;
    const asked = new Question<T>(path, answer);
    question.current = asked;
    asked.ask();
    return () => {
      question.current = null;
      asked.stop();
    };
  }, [path]);
  const first = useRef(true);
  useEffect(() => {
    if (!first.current) question.current?.ask();
    first.current = false;
  }, [epoch]);
  return answer;
}
