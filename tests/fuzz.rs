//! Bytes from outside, changed at random: nothing panics, nothing runs without end, whatever comes in.
//!
//! Each reader starts from its seeds (`support/readers.rs`): all of them as they are, then changed ones. A run of
//! `cargo test` makes some thousand attempts; `make fuzz` goes on for ten minutes, `make fuzz-coverage` searches the same
//! readers by what the inputs reach. Attempts follow from `FUZZ_SEED` (default 1) and their number alone: what fails is
//! printed and happens again.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test that cannot go on fails, and runs natively"
)]

#[path = "support/readers.rs"]
mod readers;
#[path = "support/replay.rs"]
#[expect(dead_code, reason = "shared with other test crates")]
mod replay;
#[path = "support/sqlite.rs"]
#[expect(dead_code, reason = "shared with other test crates")]
mod sqlite;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use readers::readers;

/// One attempt may take this long on a busy machine, unoptimised. What runs without end takes longer.
const ATTEMPT_MAX: Duration = Duration::from_secs(10);

/// Changed inputs of each reader without `FUZZ_SECONDS`.
const ATTEMPTS: usize = 400;

/// Longest input, in bytes.
const INPUT_MAX_BYTES: usize = 16 * 1024;

/// A small generator of numbers: the same ones everywhere.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ (number >> 31)
    }

    fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.next() % (most.max(1) as u64)).unwrap()
    }
}

/// What breaks parsers: halves of characters, escapes, edges of numbers, marks of our formats.
const PIECES: &[&[u8]] = &[
    b"\0",
    b"\r",
    b"\n\n",
    b"\r\n",
    b"\"",
    b"\\",
    b"\\u",
    b"\\ud800",
    b"\\udc00",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"null",
    b"true",
    b"-",
    b"0",
    b"1e999",
    b"-1",
    b"18446744073709551616",
    b"0.0000001",
    b"1e-400",
    b"data:",
    b"event:",
    b"data: [DONE]",
    b"\xff",
    b"\xc3",
    b"\xf0\x9f",
    b"\xe2\x80\xa8",
    b"%",
    b"%F",
    b"%00",
    b"=",
    b"&",
    b";q=0",
    b"..",
    b"//",
    b"@",
    b"*",
    b"$ref",
    b"#",
    b"\xef\xbb\xbf",
    b"eyJ",
    b".",
    b"tc_",
];

fn mutated(dice: &mut Dice, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = corpus[dice.below(corpus.len())].clone();
    for _ in 0..=dice.below(6) {
        let at = dice.below(bytes.len() + 1);
        let end = (at + dice.below(32)).min(bytes.len());
        match dice.below(7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << dice.below(8),
            1 => drop(bytes.splice(at..at, PIECES[dice.below(PIECES.len())].iter().copied())),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let copy = bytes[at..end].to_vec();
                let times = 1 + dice.below(40);
                bytes.splice(at..at, copy.repeat(times));
            }
            4 => bytes.truncate(at),
            5 => {
                let other = &corpus[dice.below(corpus.len())];
                let from = dice.below(other.len() + 1);
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            _ => drop(bytes.splice(at..end, PIECES[dice.below(PIECES.len())].iter().copied())),
        }
        bytes.truncate(INPUT_MAX_BYTES);
    }
    bytes
}

#[test]
fn changed_input_never_panics_and_never_runs_without_end() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = number("FUZZ_SEED").unwrap_or(1);
    let readers = readers();
    let time_of_each = number("FUZZ_SECONDS")
        .map(|seconds| Duration::from_secs(seconds) / u32::try_from(readers.len()).unwrap());
    for reader in &readers {
        let started = Instant::now();
        let (mut count, mut slowest) = (0usize, Duration::ZERO);
        let corpus = [reader.seeds.as_slice(), &reader.kept].concat();
        let least = corpus.len();
        while count < least || time_of_each.map_or(count < least + ATTEMPTS, |most| started.elapsed() < most)
        {
            let mut dice = Dice(seed.wrapping_mul(0x1_0000_0000).wrapping_add(count as u64));
            let input = match corpus.get(count) {
                Some(seed) => seed.clone(),
                None => mutated(&mut dice, &corpus),
            };
            let attempt = Instant::now();
            let outcome = catch_unwind(AssertUnwindSafe(|| (reader.read)(&input)));
            let taken = attempt.elapsed();
            let (name, shown) = (reader.name, input.escape_ascii());
            assert!(
                outcome.is_ok(),
                "{name}, seed {seed}, attempt {count} panics on {shown}"
            );
            assert!(
                taken < ATTEMPT_MAX,
                "{name}, seed {seed}, attempt {count} takes {taken:?} for {shown}"
            );
            slowest = slowest.max(taken);
            count += 1;
        }
        println!("{:26} {count:>10} attempts, slowest {slowest:?}", reader.name);
    }
}
