//! The one place that knows HTTP statuses.
