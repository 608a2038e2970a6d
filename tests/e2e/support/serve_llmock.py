"""Serves llmock on a free port, prints its address, and ends with its input."""

import sys

from llmock.testing import LLMockServer

with LLMockServer() as server:
    print(server.url, flush=True)
    sys.stdin.read()
