//! HTTP plumbing that knows no feature.

pub mod extract;
pub mod layers;
pub mod page;
pub mod problem;
