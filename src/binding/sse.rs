//! The SSE binding: one `data: <JSON>` frame per event, LF only (contract 2.4, D7).
