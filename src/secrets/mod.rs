//! What must not be read by others: values sealed at rest, and tokens kept only as their hash.
//!
//! Invariants: a sealed value names the key that sealed it and is bound to one place (table, column
//! and row), so it opens nowhere else; no key or plain text appears in `Debug`, an error or a log.

mod ring;
mod seal;
mod token;

pub use ring::{RingError, SecretRing};
pub use seal::OpenError;
pub use token::{hash_token, is_api_key, new_api_key, same_secret};
