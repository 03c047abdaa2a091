//! Tokens: 256 random bits, so a plain SHA-256 is enough to keep and to look up.

use super::ring::fill_from_the_system;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// A new API key: 64 lower-case hexadecimal digits from the operating system.
pub fn new_api_key() -> String {
    let mut bytes = [0_u8; 32];
    fill_from_the_system(&mut bytes);
    hex(&bytes)
}

/// Whether a text has the form of an API key: 64 lower-case hexadecimal characters.
pub fn is_api_key(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// What is kept of a token: its SHA-256, in hexadecimal.
pub fn hash_token(token: &str) -> String {
    hex(&Sha256::digest(token.as_bytes()))
}

/// Compares two secrets without telling, by the time it takes, how far they agree.
pub fn same_secret(left: &str, right: &str) -> bool {
    let (left, right) = (Sha256::digest(left.as_bytes()), Sha256::digest(right.as_bytes()));
    left.as_slice().ct_eq(right.as_slice()).into()
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_64_hexadecimal_digits_and_never_the_same() {
        let key = new_api_key();
        assert_eq!(key.len(), 64);
        assert!(key.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')));
        assert_ne!(key, new_api_key());
    }

    #[test]
    fn the_hash_is_sha_256() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash_token("abc"), expected);
    }

    #[test]
    fn secrets_of_any_length_are_compared() {
        assert!(same_secret("abc", "abc"));
        assert!(!same_secret("abc", "abd"));
        assert!(!same_secret("abc", "ab"));
        assert!(!same_secret("", "a"));
    }
}
