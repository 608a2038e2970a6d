// The front-end tools of this page. One more is a file here and a line below.

import type { Tool } from "@ag-ui/core";
import { disabledTools } from "../state/settings.ts";
import { askConfirmation } from "./confirmation.ts";
import { drawShape } from "./drawing.tsx";
import { getLocation } from "./location.tsx";
import { setTheme } from "./theme.tsx";
import type { PageTool } from "./tool.ts";

export const pageTools: PageTool[] = [setTheme, drawShape, getLocation, askConfirmation];

export const pageTool = (name: string): PageTool | undefined => pageTools.find((tool) => tool.name === name);

export const offeredTools = (): Tool[] =>
  pageTools
    .filter(({ name }) => !disabledTools.value.includes(name))
    .map(({ name, description, parameters }) => ({ name, description, parameters }));
