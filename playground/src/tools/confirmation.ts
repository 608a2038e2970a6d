import { askPerson } from "../state/questions.ts";
import type { PageTool } from "./tool.ts";

export const askConfirmation: PageTool = {
  name: "ask_confirmation",
  label: "Confirmation",
  description: "Asks the person a yes-or-no question in a dialog, and waits for the answer.",
  parameters: {
    type: "object",
    properties: { question: { type: "string", description: "What to ask." } },
    required: ["question"],
  },
  isAsking: true,
  async execute(args, signal) {
    const question = { from: "The agent asks", text: String(args["question"]), yes: "Yes, go ahead", no: "No" };
    return { confirmed: await askPerson(question, signal) };
  },
};
