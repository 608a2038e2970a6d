import { theme } from "../state/settings.ts";
import { argumentsOf, type PageTool } from "./tool.ts";

export const setTheme: PageTool = {
  name: "set_theme",
  label: "Theme",
  description: "Sets the colours of this page.",
  parameters: {
    type: "object",
    properties: { theme: { type: "string", enum: ["light", "dark"] } },
    required: ["theme"],
  },
  execute(args) {
    const before = theme.value;
    const wanted = args["theme"];
    if (wanted !== "light" && wanted !== "dark") throw new Error("theme must be light or dark");
    theme.value = wanted;
    return { theme: wanted, before };
  },
  Picture: ({ call }) => {
    const wanted = argumentsOf(call)["theme"] === "dark" ? "dark" : "light";
    return (
      <div class="swatch" data-swatch={wanted} role="img" aria-label={`The ${wanted} theme`}>
        <i /> <i /> <i />
      </div>
    );
  },
};
