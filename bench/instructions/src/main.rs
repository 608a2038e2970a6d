//! Runs one named piece of work once, for an instruction counter. `instructions` alone prints the names.

mod ports;
mod work;

use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(name) = std::env::args().nth(1) else {
        for (name, _) in work::ALL {
            println!("{name}");
        }
        return ExitCode::SUCCESS;
    };
    let Some((_, run)) = work::ALL.iter().find(|(known, _)| *known == name) else {
        eprintln!("no work of the name {name}");
        return ExitCode::FAILURE;
    };
    // What was done is printed, so that no compiler may leave it out, and a wrong result shows.
    println!("{name}: {}", run());
    ExitCode::SUCCESS
}
