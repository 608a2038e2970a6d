// Drawn for this page on a grid of 24, in strokes.

const paths = {
  alert: "M12 8v5M12 16.5v.1M10.3 3.9 2.6 17.4A2 2 0 0 0 4.3 20.4h15.4a2 2 0 0 0 1.7-3L13.7 3.9a2 2 0 0 0-3.4 0Z",
  arrowDown: "M12 5v14M6 13l6 6 6-6",
  arrowUp: "M12 19V5M6 11l6-6 6 6",
  bolt: "M13 3 5 14h6l-1 7 8-11h-6l1-7Z",
  check: "M5 12.5 10 17 19 7",
  chevron: "M9 6l6 6-6 6",
  clock: "M12 7v5l3 2M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18Z",
  close: "M6 6l12 12M18 6 6 18",
  copy: "M9 9h10v11H9zM5 15V4h10",
  download: "M12 4v11M7 11l5 5 5-5M5 20h14",
  gear: "M4 7h9M17 7h3M4 17h3M11 17h9M15 5v4M9 15v4",
  menu: "M4 7h16M4 12h16M4 17h10",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5Z",
  panel: "M4 5h16v14H4zM14 5v14",
  pencil: "M5 19l1-4L16 5l3 3L9 18l-4 1Z",
  pin: "M12 21s7-6.2 7-11.3A7 7 0 0 0 5 9.7C5 14.8 12 21 12 21ZM12 12a2.3 2.3 0 1 0 0-4.6 2.3 2.3 0 0 0 0 4.600Z",
  plug: "M9 3v5M15 3v5M6 8h12v3a6 6 0 0 1-12 0V8ZM12 17v4",
  plus: "M12 5v14M5 12h14",
  question: "M9 9.500a3 3 0 1 1 4.5 2.600c-1 .6-1.5 1.2-1.5 2.400M12 17.500v.1M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18Z",
  refresh: "M20 11a8 8 0 0 0-14.5-3.500L4 9M4 4v5h5M4 13a8 8 0 0 0 14.5 3.500L20 15M20 20v-5h-5",
  search: "M20 20l-4.5-4.500M11 17a6 6 0 1 0 0-12 6 6 0 0 0 0 12Z",
  server: "M4 5h16v6H4zM4 13h16v6H4zM8 8v.1M8 16v.1",
  shapes: "M12 3.5 16 10H8ZM4 14h6v6H4zM17 20a3 3 0 1 0 0-6 3 3 0 0 0 0 6Z",
  stop: "M7 7h10v10H7z",
  sun: "M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8ZM12 3v2M12 19v2M3 12h2M19 12h2M5.6 5.6 7 7M17 17l1.4 1.400M5.6 18.4 7 17M17 7l1.4-1.4",
  text: "M5 6h14M5 11h14M5 16h9",
  tool: "M14.5 6.500a4 4 0 0 1 5-1.200L17 8l1 2 2 .6 1-2.400a4 4 0 0 1-5.6 4.400L9 19a2.1 2.1 0 0 1-3-3l6.4-6.400a4 4 0 0 1 2.1-3.100Z",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
} as const;

export type IconName = keyof typeof paths;

/** Says nothing to a screen reader: the words stand beside it, or in its button's label. */
export const Icon = ({ name }: { name: IconName }) => (
  <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
    <path d={paths[name]} />
  </svg>
);
