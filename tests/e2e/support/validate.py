"""Runs ag-ui-validate against an endpoint with the RunAgentInput on stdin; prints what it found as JSON.

The command line of the validator sends one fixed input, which can neither name an agent nor bring tools.
"""

import asyncio
import dataclasses
import json
import sys

from ag_ui_validate.transport import TransportOptions, validate_endpoint

# AGUI902 asks for features nobody has to offer; AGUI507 takes a short answer in one packet for a buffered one.
IGNORED = {"AGUI902", "AGUI507"}


async def main() -> None:
    options = TransportOptions(input=json.load(sys.stdin), timeout_ms=30_000)
    report = (await validate_endpoint(sys.argv[1], options)).report
    judged = [one for one in report.diagnostics if one.severity != "info" and one.rule not in IGNORED]
    found = [dataclasses.asdict(one) for one in judged]
    print(json.dumps({"found": found, "internalErrors": report.internal_errors, "eventCount": report.event_count}))


asyncio.run(main())
