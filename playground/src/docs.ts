// The page at /docs: the server's own description in a viewer that asks nobody else.

declare const IO_BRIDGE_PREFIX: string;
declare const SwaggerUIBundle: (options: object) => void;

SwaggerUIBundle({
  dom_id: "#api",
  url: `${IO_BRIDGE_PREFIX}/openapi.json`,
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  docExpansion: "list",
  tryItOutEnabled: true,
  // Its badge would ask a server elsewhere.
  validatorUrl: null,
});
