//! Moving in: what an operator brings along from elsewhere.

pub mod mailctl;
