// Light or dark: the system's choice until the user makes another one.

import { effect, signal } from "@preact/signals";

export type Theme = "light" | "dark";
const KEY = "stowage-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

function stored(): Theme | null {
  const value = localStorage.getItem(KEY);
  return value === "light" || value === "dark" ? value : null;
}

const system = (): Theme => (dark.matches ? "dark" : "light");

export const theme = signal<Theme>(stored() ?? system());

dark.addEventListener("change", () => {
  if (stored() === null) theme.value = system();
});
effect(() => {
  document.documentElement.dataset["theme"] = theme.value;
});

export function toggleTheme(): void {
  theme.value = theme.value === "dark" ? "light" : "dark";
  if (theme.value === system()) localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, theme.value);
}

/** The value of a CSS colour, as drawn in the theme of now. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
