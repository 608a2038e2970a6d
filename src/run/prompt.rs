//! Stored and incoming messages -> what the model is asked.
