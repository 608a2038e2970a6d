//! Query parameters of the list routes.
