import type { PageTool } from "./tool.ts";

// Made up, so that no browser has to ask and every run answers the same.
const PLACE = { city: "Sofia", country: "Bulgaria", latitude: 42.6977, longitude: 23.3219, accuracyM: 25, isMadeUp: true };

const LOOKING_MS = 600;

export const getLocation: PageTool = {
  name: "get_location",
  label: "Location",
  description: "Where the person is.",
  parameters: { type: "object", properties: {} },
  async execute(_args, signal) {
    await new Promise((resolve, reject) => {
      setTimeout(resolve, LOOKING_MS);
      signal.addEventListener("abort", () => reject(new Error("no longer asked for")));
    });
    return PLACE;
  },
  Picture: ({ call }) =>
    call.status === "done" ? (
      <svg class="map" viewBox="0 0 480 126" role="img" aria-label={`A map of ${PLACE.city}, made up`}>
        <path class="map-park" d="M300-10h130l30 90-90 40-80-30Z" />
        <path class="map-water" d="M-10 100C80 76 120 130 220 106S400 116 490 90V140H-10Z" />
        <path class="map-street" d="M-10 40L490 10M-10 90L490 60M90-10L130 160M210-10L230 160M350-10L330 160M-10 0L300 160" />
        <circle class="map-reach" cx="240" cy="60" r="34" />
        <circle class="map-pin" cx="240" cy="60" r="8" />
        <text class="map-name" x="262" y="65">{PLACE.city}</text>
      </svg>
    ) : null,
};
