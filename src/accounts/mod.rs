//! Who may come in: API keys, what they may do, and the handler signatures that say so.

pub mod access;
pub mod api_keys;
