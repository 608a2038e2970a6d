//! The shell on the platform: thin, takes no decisions.
