//! The readers of `tests/support/readers.rs` under libFuzzer, one at a time: `READER` names it. With `SEEDS`, its seeds
//! are put into that folder first.

#![no_main]

#[path = "../tests/support/readers.rs"]
mod readers;
#[path = "../tests/support/replay.rs"]
#[expect(dead_code, reason = "shared with other crates")]
mod replay;
#[path = "../tests/support/sqlite.rs"]
#[expect(dead_code, reason = "shared with other crates")]
mod sqlite;

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use readers::{Reader, readers};

thread_local! {
    static READER: Reader = {
        let name = std::env::var("READER").unwrap_or_default();
        let found = readers().into_iter().find(|reader| reader.name == name);
        found.unwrap_or_else(|| panic!("READER is {name:?}, which is none"))
    };
}

/// Without a reader, prints the names of all and ends.
fn begin() {
    if std::env::var_os("READER").is_none() {
        readers().iter().for_each(|reader| println!("{}", reader.name));
        std::process::exit(0);
    }
    let Ok(folder) = std::env::var("SEEDS") else {
        return;
    };
    READER.with(|reader| {
        for (kind, inputs) in [("seed", &reader.seeds), ("kept", &reader.kept)] {
            for (index, input) in inputs.iter().enumerate() {
                std::fs::write(Path::new(&folder).join(format!("{kind}-{index}")), input).unwrap();
            }
        }
    });
}

fuzz_target!(init: begin(), |bytes: &[u8]| READER.with(|reader| (reader.read)(bytes)));
