//! Who is calling.
