// The physical floor: the model's bytes as they are, through the same runtime, untouched.

import { askModel } from "./translate.mjs";

export default {
  async fetch(request, env) {
    const body = await askModel(env, await request.json());
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  },
};
