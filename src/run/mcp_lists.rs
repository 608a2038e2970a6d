//! What MCP servers offer, remembered for a while: one request per server and isolate, not one per run.

use std::cell::RefCell;
use std::rc::Rc;

use crate::tool::mcp::{McpFault, McpTool};

/// How long a list counts, in milliseconds.
const LIST_MS: u64 = 5 * 60 * 1000;
/// How long a server that failed is left alone, in milliseconds: runs that follow each other do not all wait for it.
const FAILURE_MS: u64 = 10 * 1000;

/// The tools a server offers, or why it offers none.
pub type McpListing = Result<Rc<Vec<McpTool>>, McpFault>;

#[derive(Debug)]
struct Entry {
    server: String,
    listing: McpListing,
    until_ms: u64,
}

/// Lists by name of the server. Plain data: it may outlive the request that filled it.
#[derive(Debug, Default)]
pub struct McpLists {
    entries: RefCell<Vec<Entry>>,
}

impl McpLists {
    /// The list of a server, while it counts.
    pub fn get(&self, server: &str, now_ms: u64) -> Option<McpListing> {
        let entries = self.entries.borrow();
        let entry = entries.iter().find(|entry| entry.server == server)?;
        (now_ms < entry.until_ms).then(|| entry.listing.clone())
    }

    /// Remembers a list.
    pub fn keep(&self, server: &str, listing: McpListing, now_ms: u64) {
        let keep_ms = if listing.is_ok() { LIST_MS } else { FAILURE_MS };
        self.forget(server);
        self.entries.borrow_mut().push(Entry {
            server: server.to_owned(),
            listing,
            until_ms: now_ms.saturating_add(keep_ms),
        });
    }

    /// The server says its tools have changed.
    pub fn forget(&self, server: &str) {
        self.entries.borrow_mut().retain(|entry| entry.server != server);
    }
}
