//! JSON Schema: the subset that occurs in tool parameters.
