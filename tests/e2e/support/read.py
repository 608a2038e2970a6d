"""Runs an agent as a Python program does: httpx for the stream, ag-ui-protocol for its events.

Takes the address as argument and JSON `{"input": RunAgentInput, "result": any}` on stdin; answers every call of a
front-end tool with the result. Prints the events, as their Python types write them.
"""

import json
import sys

import httpx
from ag_ui.core import Event, RunAgentInput
from pydantic import TypeAdapter

EVENT = TypeAdapter(Event)


def main() -> None:
    url = sys.argv[1]
    job = json.load(sys.stdin)
    run_input = RunAgentInput.model_validate(job["input"])
    names = {tool.name for tool in run_input.tools or []}
    asked = set()
    events = []
    body = run_input.model_dump_json(by_alias=True, exclude_none=True)
    headers = {"content-type": "application/json", "accept": "text/event-stream"}
    with httpx.Client(timeout=20) as client, client.stream("POST", url, content=body, headers=headers) as answer:
        answer.raise_for_status()
        for line in answer.iter_lines():
            if not line.startswith("data: "):
                continue
            event = EVENT.validate_json(line.removeprefix("data: "))
            written = event.model_dump(mode="json", by_alias=True, exclude_none=True)
            events.append(written)
            if written["type"] == "TOOL_CALL_START" and written["toolCallName"] in names:
                asked.add(written["toolCallId"])
            if written["type"] == "TOOL_CALL_END" and written["toolCallId"] in asked:
                path = f"s/{run_input.run_id}/tool-calls/{written['toolCallId']}/result"
                client.post(url + path, json={"result": job["result"]}).raise_for_status()
    print(json.dumps(events))


main()
