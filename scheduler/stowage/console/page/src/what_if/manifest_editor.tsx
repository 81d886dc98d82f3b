// The editor of manifests with the errors of its lines; the server checks while one types.

import type { EditorView } from "@codemirror/view";
import { useEffect, useRef, useState } from "preact/hooks";
import { plural } from "../formats";
import type { CheckedManifests, LineError } from "../server/answers";
import { ask } from "../server/ask";
import { errorText } from "./line_errors";
import { manifests } from "./question";

const TYPING_PAUSE_MS = 400;
const HINT = "apiVersion: apps/v1\nkind: Deployment\n…";

/** The editor is large, so it is loaded when this view is first opened. */
interface Editor {
  view: EditorView;
  module: typeof import("./editor");
}

/** What the server finds in the manifests, a moment after the last change. */
function useCheck(text: string): CheckedManifests {
  const [checked, setChecked] = useState<CheckedManifests>({ objects: [], errors: [] });
  useEffect(() => {
    const controller = new AbortController();
    const timer = setTimeout(() => {
      if (!text.trim()) {
        setChecked({ objects: [], errors: [] });
        return;
      }
      ask<CheckedManifests>("/api/manifests", controller.signal, { manifests: text }).then(
        setChecked,
        (error: unknown) => {
          if (!controller.signal.aborted) {
            setChecked({ objects: [], errors: [{ message: (error as Error).message }] });
          }
        },
      );
    }, TYPING_PAUSE_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [text]);
  return checked;
}

export function ManifestEditor({ errors, onRun }: { errors: LineError[]; onRun: () => void }) {
  const place = useRef<HTMLDivElement>(null);
  const [editor, setEditor] = useState<Editor | null>(null);
  const run = useRef(onRun);
  run.current = onRun;
  const checked = useCheck(manifests.value);
  const shown = checked.errors.length ? checked.errors : errors;
  useEffect(() => {
    let made: EditorView | null = null;
    let left = false;
    void import("./editor").then((module) => {
      if (left || !place.current) return;
      made = module.makeEditor(place.current, {
        text: manifests.peek(),
        label: "Manifests to create, as YAML",
        hint: HINT,
        onChange: (text) => {
          manifests.value = text;
        },
        onRun: () => run.current(),
      });
      setEditor({ view: made, module });
    });
    return () => {
      left = true;
      made?.destroy();
    };
  }, []);
  useEffect(() => editor?.module.showErrors(editor.view, shown), [editor, shown]);
  return (
    <section aria-label="Manifests">
      <h2>Manifests</h2>
      <div class="editor" ref={place} />
      <div role="status" class="small">
        {shown.map((each) => (
          <p class="line-error" key={`${each.line} ${each.message}`}>
            {each.line ? `Line ${each.line}: ` : ""}
            {errorText(each)}
          </p>
        ))}
        {!shown.length && checked.objects.length > 0 && (
          <p class="muted">{objectsText(checked)}</p>
        )}
      </div>
    </section>
  );
}

function objectsText({ objects }: CheckedManifests): string {
  const pods = objects.reduce((sum, each) => sum + each.pods, 0);
  const names = objects.slice(0, 4).map((each) => `${each.kind} ${each.name}`);
  const rest = objects.length > 4 ? ` and ${plural(objects.length - 4, "other")}` : "";
  return `${names.join(", ")}${rest}: ${plural(pods, "pod")}`;
}
