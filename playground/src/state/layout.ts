// What is open, and how wide the window is.

import { computed, effect, signal } from "@preact/signals";
import { isInspectorWanted, theme } from "./settings.ts";

const narrow = matchMedia("(max-width: 860px)");
const medium = matchMedia("(max-width: 1180px)");

/** The list and the inspector lie over the chat. */
export const isNarrow = signal(narrow.matches);
export const isListOpen = signal(!narrow.matches);
export const isInspectorOpen = signal(isInspectorWanted.value && !medium.matches);
/** One of them lies over the chat now. */
export const isCovered = computed(() => isNarrow.value && (isListOpen.value || isInspectorOpen.value));
export const isSettingsOpen = signal(false);
/** Said to screen readers. */
export const announcement = signal("");

narrow.addEventListener("change", ({ matches }) => {
  isNarrow.value = matches;
  isListOpen.value = !matches;
  if (matches) isInspectorOpen.value = false;
});

export function toggleInspector(): void {
  isInspectorOpen.value = !isInspectorOpen.value;
  if (!isNarrow.value) isInspectorWanted.value = isInspectorOpen.value;
}

export function uncover(): void {
  isListOpen.value = false;
  isInspectorOpen.value = false;
}

effect(() => {
  document.documentElement.dataset["theme"] = theme.value;
});
