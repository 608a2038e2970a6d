//! Prints generated events, one a line: `[<its JSON>, "<its protobuf frame, hexadecimal>"]`. The arguments are seed and
//! count. `tests/e2e/protobuf-properties.test.mjs` reads them with the reference library.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a tool of the tests stops at the first surprise"
)]

#[path = "generated_events.rs"]
mod generated_events;

use std::io::{BufWriter, Write};

use generated_events::Events;
use io_bridge::binding::{protobuf, sse};

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().unwrap());
    let (seed, count) = (arguments.next().unwrap(), arguments.next().unwrap());
    let mut out = BufWriter::new(std::io::stdout().lock());
    for event in Events::new(seed).take(usize::try_from(count).unwrap()) {
        let (mut json, mut frame) = (Vec::new(), Vec::new());
        sse::encode_json(&event, &mut json);
        protobuf::encode_event(&event, &mut frame);
        let hex: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
        out.write_all(b"[").unwrap();
        out.write_all(&json).unwrap();
        writeln!(out, ",\"{hex}\"]").unwrap();
    }
    out.flush().unwrap();
}
