//! How Postroom presents itself: the frame of its API document.

pub mod openapi;
