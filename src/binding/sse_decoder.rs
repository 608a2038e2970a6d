//! Incremental reader of SSE bodies, for upstreams and MCP servers, whatever the chunking.
