//! The ring of keys: the first one seals, all of them open. Turning the key is: put a new one in
//! front, seal everything again, take the old one away.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rand::{TryRng as _, rngs::SysRng};
use secrecy::{ExposeSecret as _, SecretBox};
use std::fmt;

const KEY_BYTES: usize = 32;

/// Why a text is no ring of keys. No variant repeats what may be a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RingError {
    #[error("holds no key")]
    Empty,
    #[error("part {0} is not of the form id:base64")]
    Shape(usize),
    #[error("the id of part {0} must be 1 to 32 letters, digits, '-' or '_'")]
    Id(usize),
    #[error("the key {0:?} is not valid base64")]
    Base64(String),
    #[error("the key {id:?} has {bytes} bytes, and {KEY_BYTES} are needed")]
    Length { id: String, bytes: usize },
    #[error("the id {0:?} is there twice")]
    Twice(String),
}

/// Keys by id, `id:base64(32 bytes)[,id:…]` in text. `Debug` shows the ids only.
pub struct SecretRing {
    keys: Vec<(String, SecretBox<[u8; KEY_BYTES]>)>,
}

impl SecretRing {
    /// Reads a ring. A part without an id is refused: the id is what makes a later turn possible.
    pub fn parse(text: &str) -> Result<Self, RingError> {
        let mut keys: Vec<(String, SecretBox<[u8; KEY_BYTES]>)> = Vec::new();
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        for (index, part) in parts.enumerate() {
            let (id, key) = part.split_once(':').ok_or(RingError::Shape(index + 1))?;
            if !is_key_id(id) {
                return Err(RingError::Id(index + 1));
            }
            if keys.iter().any(|(known, _)| known == id) {
                return Err(RingError::Twice(id.to_owned()));
            }
            let mut bytes = STANDARD.decode(key).map_err(|_| RingError::Base64(id.to_owned()))?;
            let key: [u8; KEY_BYTES] = bytes
                .as_slice()
                .try_into()
                .map_err(|_| RingError::Length { id: id.to_owned(), bytes: bytes.len() })?;
            bytes.fill(0);
            keys.push((id.to_owned(), SecretBox::new(Box::new(key))));
        }
        if keys.is_empty() { Err(RingError::Empty) } else { Ok(Self { keys }) }
    }

    /// The text of a fresh ring with one key of the given id, for a first start.
    pub fn generate(id: &str) -> String {
        let mut key = [0_u8; KEY_BYTES];
        fill_from_the_system(&mut key);
        format!("{id}:{}", STANDARD.encode(key))
    }

    /// The id of the key that seals.
    pub fn sealing_id(&self) -> &str {
        self.sealing().0
    }

    pub(super) fn sealing(&self) -> (&str, &[u8; KEY_BYTES]) {
        let (id, key) = &self.keys[0];
        (id, key.expose_secret())
    }

    pub(super) fn find(&self, id: &str) -> Option<&[u8; KEY_BYTES]> {
        self.keys.iter().find(|(known, _)| known == id).map(|(_, key)| key.expose_secret())
    }
}

impl fmt::Debug for SecretRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.keys.iter().map(|(id, _)| id)).finish()
    }
}

fn is_key_id(id: &str) -> bool {
    (1..=32).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

/// Random bytes of the operating system. Without them nothing here is safe, so there is no
/// error to handle: a machine that cannot give them must not go on.
pub(super) fn fill_from_the_system(bytes: &mut [u8]) {
    SysRng.try_fill_bytes(bytes).expect("the operating system gives random bytes");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_ring_can_be_read_and_its_first_key_seals() {
        let text = format!("{},{}", SecretRing::generate("b"), SecretRing::generate("a"));
        assert_eq!(SecretRing::parse(&text).unwrap().sealing_id(), "b");
    }

    #[test]
    fn debug_shows_ids_and_never_a_key() {
        let text = SecretRing::generate("k1");
        let shown = format!("{:?}", SecretRing::parse(&text).unwrap());
        assert_eq!(shown, r#"["k1"]"#);
    }

    #[test]
    fn every_malformed_ring_has_its_reason_and_none_repeats_the_key() {
        let good = SecretRing::generate("k");
        let cases = [
            ("", RingError::Empty),
            (" , ", RingError::Empty),
            ("c2VjcmV0", RingError::Shape(1)),
            ("a.b:c2VjcmV0", RingError::Id(1)),
            (":c2VjcmV0", RingError::Id(1)),
            ("k:###", RingError::Base64("k".into())),
            ("k:c2VjcmV0", RingError::Length { id: "k".into(), bytes: 6 }),
            (&format!("{good},{good}"), RingError::Twice("k".into())),
        ];
        for (text, expected) in cases {
            let error = SecretRing::parse(text).unwrap_err();
            assert_eq!(error, expected);
            assert!(!error.to_string().contains("c2VjcmV0"));
        }
    }
}
