// The least a Worker can be, for cold starts.

export default { fetch: () => new Response("hello") };
