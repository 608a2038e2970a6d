//! The legal order of events.
