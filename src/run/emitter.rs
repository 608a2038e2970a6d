//! The one door to the stream.
