//! CORS as data.
