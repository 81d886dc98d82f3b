// A text field that finds pods: a combobox as the ARIA practices describe it.

import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { PodSearch } from "../server/answers";
import { pathOf, useAnswer } from "../server/ask";
import { at } from "../routing";

interface ChooserProps {
  label: string;
  pod: string;
  onChoose: (pod: string) => void;
}

export function PodChooser({ label, pod, onChoose }: ChooserProps) {
  const id = useId();
  const field = useRef<HTMLInputElement>(null);
  const [text, setText] = useState(pod);
  const [open, setOpen] = useState(false);
  const [active, setActive] = useState(0);
  useEffect(() => setText(pod), [pod]);
  const q = text === pod ? "" : text;
  const path = open ? pathOf("/api/pods", { q, limit: 12, at: at() }) : null;
  const found = useAnswer<PodSearch>(path, 0, true).value;
  const pods = found.value?.pods ?? [];
  const choose = (chosen: string) => {
    setText(chosen);
    setOpen(false);
    onChoose(chosen);
  };
  const keyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape" && open) {
      setOpen(false);
      event.stopPropagation();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setOpen(true);
      const step = event.key === "ArrowDown" ? 1 : -1;
      setActive((before) => Math.max(0, Math.min(pods.length - 1, open ? before + step : 0)));
    } else if (event.key === "Enter") {
      const chosen = open ? pods[active]?.pod : undefined;
      choose(chosen ?? text.trim());
    }
  };
  return (
    <div class="chooser">
      <label for={`${id}-field`}>{label}</label>
      <input
        id={`${id}-field`}
        ref={field}
        type="text"
        role="combobox"
        autocomplete="off"
        spellcheck={false}
        placeholder="namespace/name"
        aria-expanded={open && pods.length > 0}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        {...(open && pods[active] ? { "aria-activedescendant": `${id}-${active}` } : {})}
        value={text}
        onFocus={(event) => event.currentTarget.select()}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setActive(0);
          setOpen(true);
        }}
        onKeyDown={keyDown}
        onBlur={() => setOpen(false)}
      />
      <ul id={`${id}-list`} role="listbox" aria-label={`${label}: pods`} hidden={!open || !pods.length}>
        {pods.map((each, index) => (
          <li
            key={each.pod}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === active}
            onMouseDown={(event) => {
              event.preventDefault();
              choose(each.pod);
            }}
          >
            <span class="cut">{each.pod}</span>
            <span class="muted small">{each.node || "pending"}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}
