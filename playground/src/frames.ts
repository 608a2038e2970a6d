// Looks into a stream as it passes by: every frame, as it is on the wire.

import type { BaseEvent } from "@ag-ui/core";
import { decode } from "@ag-ui/proto";

export interface Frame {
  /** Milliseconds since the request was sent. */
  atMs: number;
  byteCount: number;
  /** The event, or `comment` for a keep-alive. */
  type: string;
  /** As an SSE frame, whatever the binding. */
  text: string;
  event?: BaseEvent;
}

export type Listener = (frame: Omit<Frame, "atMs">) => void;

const LENGTH_BYTES = 4;

interface Reader {
  feed(bytes: Uint8Array): void;
}

/** The same response; `listener` hears of each frame before its reader does. */
export function watched(response: Response, listener: Listener): Response {
  if (!response.ok || !response.body) return response;
  const isProtobuf = response.headers.get("content-type")?.includes("proto") ?? false;
  const frames = isProtobuf ? protobufReader(listener) : sseReader(listener);
  const source = response.body.getReader();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await source.read();
      if (done) return controller.close();
      frames.feed(value);
      controller.enqueue(value);
    },
    cancel: (reason) => source.cancel(reason),
  });
  const { status, headers } = response;
  return new Response(body, { status, headers });
}

function sseReader(listener: Listener): Reader {
  const decoder = new TextDecoder();
  let rest = "";
  return {
    feed(bytes) {
      const frames = (rest + decoder.decode(bytes, { stream: true })).split("\n\n");
      rest = frames.pop() ?? "";
      for (const text of frames) listener(sseFrame(text));
    },
  };
}

function sseFrame(text: string): Omit<Frame, "atMs"> {
  const byteCount = new TextEncoder().encode(text).length + 2;
  if (!text.startsWith("data: ")) return { byteCount, type: "comment", text };
  const event = JSON.parse(text.slice("data: ".length)) as BaseEvent;
  return { byteCount, type: event.type, text, event };
}

function protobufReader(listener: Listener): Reader {
  let rest = new Uint8Array();
  return {
    feed(bytes) {
      const joined = new Uint8Array(rest.length + bytes.length);
      joined.set(rest);
      joined.set(bytes, rest.length);
      rest = joined;
      while (rest.length >= LENGTH_BYTES) {
        const end = LENGTH_BYTES + new DataView(rest.buffer, rest.byteOffset).getUint32(0);
        if (rest.length < end) return;
        const event = decode(rest.subarray(LENGTH_BYTES, end));
        listener({ byteCount: end, type: event.type, text: `data: ${JSON.stringify(event)}`, event });
        rest = rest.slice(end);
      }
    },
  };
}

/** The frames as a file of the SSE binding. */
export const asSse = (frames: Frame[]): string => frames.map(({ text }) => `${text}\n\n`).join("");
