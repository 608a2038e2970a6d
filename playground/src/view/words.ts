// Numbers and times as people read them.

export const duration = (ms: number): string => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);

export const size = (bytes: number): string => (bytes < 1024 ? `${bytes} B` : `${(bytes / 1024).toFixed(1)} KiB`);

const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });
const units: [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
];

export function ago(iso: string): string {
  const ms = Date.parse(iso) - Date.now();
  const [unit, unitMs] = units.find(([, unitMs]) => Math.abs(ms) >= unitMs) ?? ["second", 0];
  if (unitMs === 0) return "now";
  return relative.format(Math.round(ms / unitMs), unit);
}

/** JSON text indented; anything else as it is. */
export function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
