//! Postroom.

pub mod address;
pub mod config;
pub mod dev;
pub mod error;
pub mod outside;
pub mod secrets;
pub mod sending;
pub mod telemetry;
