//! Postroom.

pub mod error;
pub mod outside;
pub mod sending;
