//! The mailbox against a plain reference, over thousands of random schedules (contract 3: the first result wins).
//!
//! A schedule is told by its seed, which every failure prints; `MAILBOX_SEED=<seed> cargo test --test mailbox` plays it
//! alone.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use io_bridge::protocol::id::ToolCallId;
use io_bridge::protocol::tool::ToolResult;
use io_bridge::run::mailbox::{Delivery, ExpectedCall, ToolMailbox};

const SCHEDULE_COUNT: u64 = 5_000;
const STEP_COUNT: u32 = 60;

/// SplitMix64: small, and good enough to shuffle a schedule.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % u64::try_from(bound).unwrap()).unwrap()
    }
}

/// What must hold, without any cleverness: every call with its fate, and the results nobody has taken yet.
#[derive(Default)]
struct Reference {
    calls: Vec<(ExpectedCall, Fate)>,
    untaken: VecDeque<(ToolCallId, ToolResult)>,
}

#[derive(Clone, PartialEq)]
enum Fate {
    Waiting,
    Answered(ToolResult),
    Over,
}

impl Reference {
    fn deliver(&mut self, id: &ToolCallId, result: &ToolResult) -> Delivery {
        let Some((_, fate)) = self.calls.iter_mut().find(|(call, _)| call.id == *id) else {
            return Delivery::Unknown;
        };
        match fate {
            Fate::Over => Delivery::Expired,
            Fate::Answered(first) if first == result => Delivery::Repeated,
            Fate::Answered(_) => Delivery::Conflict,
            Fate::Waiting => {
                *fate = Fate::Answered(result.clone());
                self.untaken.push_back((id.clone(), result.clone()));
                Delivery::Accepted
            }
        }
    }

    fn end(&mut self, is_due: impl Fn(&ExpectedCall) -> bool) -> Vec<ToolCallId> {
        let due = self
            .calls
            .iter_mut()
            .filter(|(call, fate)| *fate == Fate::Waiting && is_due(call));
        due.map(|(call, fate)| {
            *fate = Fate::Over;
            call.id.clone()
        })
        .collect()
    }

    fn withdraw(&mut self, id: &ToolCallId) {
        self.untaken.retain(|(untaken, _)| untaken != id);
        for (call, fate) in &mut self.calls {
            if call.id == *id {
                *fate = Fate::Over;
            }
        }
    }

    fn pending(&self) -> Vec<ExpectedCall> {
        let waiting = self.calls.iter().filter(|(_, fate)| *fate == Fate::Waiting);
        waiting.map(|(call, _)| call.clone()).collect()
    }
}

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

type Waiting<'a> = Pin<Box<dyn Future<Output = (ToolCallId, ToolResult)> + 'a>>;

/// How often each outcome came, so that a schedule that tries nothing is noticed.
#[derive(Default, Debug)]
struct Tally {
    taken: u32,
    deliveries: [u32; 5],
    expired: u32,
}

fn play(seed: u64, tally: &mut Tally) {
    let mut random = Random(seed);
    let mailbox = ToolMailbox::default();
    let mut reference = Reference::default();
    let flag = Arc::new(Flag::default());
    let waker = Waker::from(flag.clone());
    let mut waiting: Option<Waiting<'_>> = None;
    let mut now_ms = 0;
    for step in 0..STEP_COUNT {
        let place = format!("seed {seed}, step {step}");
        let id = ToolCallId::new(format!("call-{}", random.below(12)));
        match random.below(20) {
            0..=4 if !reference.calls.iter().any(|(call, _)| call.id == id) => {
                let call = ExpectedCall {
                    id,
                    name: "pick".to_owned(),
                    arguments: "{}".to_owned(),
                    expires_at_ms: now_ms + u64::try_from(random.below(40)).unwrap(),
                };
                mailbox.register(call.clone());
                reference.calls.push((call, Fate::Waiting));
            }
            0..=12 => {
                let result = ToolResult {
                    content: random.below(2).to_string(),
                    is_error: random.below(8) == 0,
                };
                let expected = reference.deliver(&id, &result);
                assert_eq!(mailbox.deliver(&id, result), expected, "{place}");
                tally.deliveries[expected as usize] += 1;
                let must_wake = expected == Delivery::Accepted && waiting.is_some();
                assert!(
                    !must_wake || flag.0.load(Ordering::Relaxed),
                    "nobody was woken at {place}"
                );
            }
            13..=16 => {
                // A wait goes on over many steps, or is given up and begun anew.
                if random.below(4) == 0 {
                    waiting = None;
                }
                let future = waiting.get_or_insert_with(|| Box::pin(mailbox.next_result()));
                flag.0.store(false, Ordering::Relaxed);
                let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
                match (polled, reference.untaken.pop_front()) {
                    (Poll::Ready(taken), expected) => {
                        assert_eq!(Some(taken), expected, "{place}");
                        waiting = None;
                        tally.taken += 1;
                    }
                    (Poll::Pending, expected) => assert_eq!(None, expected, "{place}"),
                }
            }
            17 => {
                now_ms += u64::try_from(random.below(20)).unwrap();
                let expected = reference.end(|call| call.expires_at_ms <= now_ms);
                tally.expired += u32::try_from(expected.len()).unwrap();
                assert_eq!(mailbox.expire(now_ms), expected, "{place}");
            }
            18 => {
                mailbox.withdraw(&id);
                reference.withdraw(&id);
            }
            _ if random.below(10) == 0 => {
                mailbox.close();
                reference.end(|_| true);
            }
            _ => {}
        }
        let pending = reference.pending();
        assert_eq!(mailbox.pending(), pending, "{place}");
        let deadline = pending.iter().map(|call| call.expires_at_ms).min();
        assert_eq!(mailbox.next_deadline_ms(), deadline, "{place}");
    }
}

#[test]
fn every_schedule_ends_as_the_reference_says() {
    let mut tally = Tally::default();
    match std::env::var("MAILBOX_SEED") {
        Ok(seed) => play(seed.parse().unwrap(), &mut tally),
        Err(_) => {
            for seed in 0..SCHEDULE_COUNT {
                play(seed, &mut tally);
            }
            println!("{SCHEDULE_COUNT} schedules from seed 0: {tally:?}");
            let counts = tally.deliveries.iter().chain([&tally.taken, &tally.expired]);
            assert!(counts.into_iter().all(|count| *count > 1_000), "{tally:?}");
        }
    }
}
