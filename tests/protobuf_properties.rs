//! The protobuf binding on generated events, held against `prost` with messages written from AG-UI 4: the same bytes.
//! `SEED=<n>` runs one seed alone, `EVENTS=<n>` more events. With the reference library in Node:
//! `tests/e2e/protobuf-properties.test.mjs`.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

#[path = "support/ag_ui_proto.rs"]
mod ag_ui_proto;
#[path = "support/generated_events.rs"]
mod generated_events;

use std::collections::HashMap;

use generated_events::Events;
use io_bridge::binding::{protobuf, sse};
use io_bridge::protocol::event::EventKind;
use prost::Message;

/// Unless `EVENTS` says otherwise.
const EVENT_COUNT: u64 = 5_000;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn every_event_has_the_bytes_of_an_independent_encoder() {
    let seed = variable("SEED").unwrap_or(1);
    let count = variable("EVENTS").unwrap_or(EVENT_COUNT);
    let mut kinds: HashMap<EventKind, u64> = HashMap::new();
    let (mut log, mut frames) = (Vec::new(), Vec::new());
    for (index, event) in Events::new(seed)
        .take(usize::try_from(count).unwrap())
        .enumerate()
    {
        let mut frame = Vec::new();
        protobuf::encode_event(&event, &mut frame);
        let message = ag_ui_proto::message(&event).encode_to_vec();
        let header = u32::try_from(message.len()).unwrap().to_be_bytes();
        let expected = [&header[..], &message].concat();
        assert!(
            frame == expected,
            "SEED={seed}, event {index}, {event:?}:\n{}\n{}",
            hex(&frame),
            hex(&expected)
        );
        *kinds.entry(event.kind()).or_default() += 1;
        sse::encode_event(&event, &mut log);
        frames.extend_from_slice(&frame);
    }
    assert!(
        protobuf::from_sse(&log) == frames,
        "SEED={seed}: read back from the log the frames differ"
    );
    println!("{count} events of seed {seed}:");
    for kind in EventKind::ALL {
        let of_kind = kinds.get(kind).copied().unwrap_or_default();
        println!("{:>22} {of_kind}", kind.as_str());
        assert!(count < 1_000 || of_kind > 0, "no {kind:?} was made");
    }
}
