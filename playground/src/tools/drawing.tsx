import type { CallItem } from "../state/items.ts";
import { argumentsOf, type Arguments, type PageTool } from "./tool.ts";

const WIDTH = 480;
const HEIGHT = 180;
const MARGIN = 52;

const radii: Record<string, number> = { small: 16, medium: 28, large: 44 };

// Around (0, 0), of radius 1.
const outlines: Record<string, string> = {
  circle: "M1 0A1 1 0 1 1-1 0A1 1 0 1 1 1 0Z",
  square: "M-.85-.85H.85V.85H-.85Z",
  triangle: "M0-1L.95.75H-.95Z",
  star: "M0-1L.24-.32.95-.31.38.12.59.81 0 .4-.59.81-.38.12-.95-.31-.24-.32Z",
  heart: "M0 .9C-1.2.1-1.05-.8-.5-.8-.2-.8 0-.55 0-.4 0-.55.2-.8.5-.8 1.05-.8 1.2.1 0 .9Z",
};

export const drawShape: PageTool = {
  name: "draw_shape",
  label: "Drawing",
  description: "Draws a shape on the canvas of this page, beside those already there.",
  parameters: {
    type: "object",
    properties: {
      shape: { type: "string", enum: Object.keys(outlines) },
      color: { type: "string", description: "A CSS colour." },
      size: { type: "string", enum: Object.keys(radii) },
    },
    required: ["shape", "color", "size"],
  },
  execute(args) {
    const { shape, color, size } = read(args);
    if (!outlines[shape]) throw new Error(`there is no shape ${shape}`);
    if (!radii[size]) throw new Error(`there is no size ${size}`);
    if (!CSS.supports("color", color)) throw new Error(`${color} is not a CSS colour`);
    return { drawn: `a ${size} ${color} ${shape}` };
  },
  Picture: ({ call, calls }) => {
    const drawn = calls.filter(({ name, status }) => name === drawShape.name && status === "done");
    // The canvas stands where it was drawn on last.
    return call.id === drawn.at(-1)?.id ? <Canvas drawn={drawn} /> : null;
  },
};

function Canvas({ drawn }: { drawn: CallItem[] }) {
  const shapes = drawn.map((call) => read(argumentsOf(call)));
  const words = shapes.map(({ shape, color, size }) => `a ${size} ${color} ${shape}`).join(", ");
  return (
    <svg class="canvas" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`The canvas: ${words}`}>
      {shapes.map(({ shape, color, size }, index) => (
        <path
          key={index}
          d={outlines[shape] ?? ""}
          fill={color}
          transform={`translate(${place(index).join(" ")}) scale(${radii[size] ?? 0})`}
        />
      ))}
    </svg>
  );
}

const read = (args: Arguments) => ({
  shape: String(args["shape"]),
  color: String(args["color"]),
  size: String(args["size"]),
});

/** Spread out however many there are: Roberts' R2 sequence, which never comes near itself. */
function place(index: number): [number, number] {
  const spread = (step: number, length: number) => MARGIN + ((0.5 + index * step) % 1) * (length - 2 * MARGIN);
  return [spread(0.7548776662, WIDTH), spread(0.5698402910, HEIGHT)];
}
