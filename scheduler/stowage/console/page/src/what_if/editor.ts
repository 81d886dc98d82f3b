// The YAML editor. It lives in a shadow root: there CodeMirror adopts its style sheets, which the
// Content-Security-Policy allows, instead of adding style elements, which it forbids.

import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
  placeholder,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import type { LineError } from "../server/answers";
import { errorText } from "./line_errors";

const HIGHLIGHT = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--accent)" },
  { tag: tags.comment, color: "var(--muted)", fontStyle: "italic" },
  { tag: [tags.meta, tags.separator], color: "var(--muted)" },
  { tag: [tags.string, tags.number, tags.bool], color: "var(--warn)" },
]);

const THEME = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--surface)", height: "100%" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-2px" },
  ".cm-scroller": { fontFamily: "var(--mono)", fontSize: "12.5px", lineHeight: "19px" },
  ".cm-content": { caretColor: "var(--text)", padding: "8px 0" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": {
    backgroundColor: "var(--surface)",
    color: "var(--muted)",
    borderRight: "1px solid var(--line)",
  },
  ".cm-activeLine, .cm-activeLineGutter": {
    backgroundColor: "color-mix(in srgb, var(--line) 40%, transparent)",
  },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground":
    { background: "color-mix(in srgb, var(--accent) 28%, transparent)" },
  ".cm-placeholder": { color: "var(--muted)" },
  ".cm-tooltip": {
    color: "var(--text)",
    backgroundColor: "var(--raised)",
    border: "1px solid var(--line-strong)",
    borderRadius: "6px",
    fontFamily: "var(--font)",
    fontSize: "12.5px",
  },
});

// Text typed over a selection is put into the document here. The browser would join the selected
// lines with a style attribute, which the Content-Security-Policy forbids.
const TYPING_OVER = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { data, inputType, isComposing } = event;
    if (inputType !== "insertText" || data === null || isComposing) return false;
    if (view.state.selection.main.empty) return false;
    const replaced = view.state.replaceSelection(data);
    view.dispatch(replaced, { userEvent: "input.type", scrollIntoView: true });
    event.preventDefault();
    return true;
  },
});

export interface EditorSettings {
  text: string;
  label: string;
  hint: string;
  onChange: (text: string) => void;
  onRun: () => void;
}

export function makeEditor(parent: HTMLElement, settings: EditorSettings): EditorView {
  const root = parent.shadowRoot ?? parent.attachShadow({ mode: "open" });
  const run = () => {
    settings.onRun();
    return true;
  };
  return new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: settings.text,
      extensions: [
        lineNumbers(),
        highlightActiveLineGutter(),
        highlightActiveLine(),
        history(),
        drawSelection(),
        indentOnInput(),
        indentUnit.of("  "),
        bracketMatching(),
        lintGutter(),
        yaml(),
        syntaxHighlighting(HIGHLIGHT),
        THEME,
        TYPING_OVER,
        placeholder(settings.hint),
        EditorView.contentAttributes.of({ "aria-label": settings.label, spellcheck: "false" }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) settings.onChange(update.state.doc.toString());
        }),
        keymap.of([{ key: "Mod-Enter", run }, ...defaultKeymap, ...historyKeymap, ...lintKeymap]),
      ],
    }),
  });
}

/** Marks the lines that the server found wrong. */
export function showErrors(view: EditorView, errors: LineError[]): void {
  const { doc } = view.state;
  const marks = errors.map((each): Diagnostic => {
    const line = doc.line(Math.min(Math.max(each.line ?? 1, 1), doc.lines));
    const from = Math.min(line.from + Math.max(0, (each.column ?? 1) - 1), line.to);
    return { from, to: line.to, severity: "error", message: errorText(each) };
  });
  view.dispatch(setDiagnostics(view.state, marks));
}
