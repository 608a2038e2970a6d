import { createRoot } from "react-dom/client";
import { CopilotKit, useFrontendTool } from "@copilotkit/react-core";
import { CopilotChat } from "@copilotkit/react-ui";
import "@copilotkit/react-ui/styles.css";

function Page() {
  useFrontendTool({
    name: "set_color",
    description: "Sets the page's background colour.",
    parameters: [{ name: "color", type: "string", description: "A CSS colour", required: true }],
    handler: async ({ color }) => {
      document.body.style.background = color;
      return { color };
    },
  });
  return <CopilotChat labels={{ initial: 'Try "set the colour to teal".' }} />;
}

createRoot(document.querySelector("#app")).render(
  // CopilotKit runs its tools after the run has ended and brings the results with the next one.
  <CopilotKit runtimeUrl="/api/copilotkit" agent="io-agent" properties={{ frontendTools: "next-run" }} showDevConsole={false}>
    <Page />
  </CopilotKit>,
);
