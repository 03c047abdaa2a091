//! Sealing: XChaCha20-Poly1305 with a random nonce, which 192 bits make safe to draw blindly.
//!
//! The sealed text is `v1.<key id>.<base64 of nonce and box>`. Version and key id are authenticated
//! together with the place, so nothing of it can be exchanged.

use super::ring::{SecretRing, fill_from_the_system};
use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use chacha20poly1305::{
    KeyInit as _, XChaCha20Poly1305, XNonce,
    aead::{Aead as _, Payload},
};
use secrecy::{ExposeSecret as _, SecretString};

const VERSION: &str = "v1";
const NONCE_BYTES: usize = 24;
const CHECK_TEXT: &str = "postroom";
const CHECK_PLACE: &str = "instance/check/secret_key";

/// Why a sealed text does not open.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    #[error("this is not a sealed value")]
    Malformed,
    #[error("it was sealed with the key {0:?}, which is not in the ring")]
    UnknownKey(String),
    /// The key of that id is another one, or the value belongs elsewhere, or it was altered.
    #[error("the key {0:?} does not open it here")]
    Refused(String),
}

impl SecretRing {
    /// Seals a text for one place. `place` binds it, as in `relays/password/<row id>`.
    pub fn seal(&self, plain: &str, place: &str) -> String {
        let (id, key) = self.sealing();
        let mut nonce = [0_u8; NONCE_BYTES];
        fill_from_the_system(&mut nonce);
        let aad = bound(id, place);
        let sealed = XChaCha20Poly1305::new(key.into())
            .encrypt(&XNonce::from(nonce), Payload { msg: plain.as_bytes(), aad: aad.as_bytes() })
            .expect("a text in memory is below the cipher's limit of 256 GiB");
        let body = STANDARD_NO_PAD.encode([nonce.as_slice(), &sealed].concat());
        format!("{VERSION}.{id}.{body}")
    }

    /// Opens what [`seal`](Self::seal) made for the same place.
    pub fn open(&self, sealed: &str, place: &str) -> Result<SecretString, OpenError> {
        let (id, body) = split(sealed).ok_or(OpenError::Malformed)?;
        let body = STANDARD_NO_PAD.decode(body).map_err(|_| OpenError::Malformed)?;
        let (nonce, sealed) =
            body.split_first_chunk::<NONCE_BYTES>().ok_or(OpenError::Malformed)?;
        let key = self.find(id).ok_or_else(|| OpenError::UnknownKey(id.to_owned()))?;
        let aad = bound(id, place);
        let plain = XChaCha20Poly1305::new(key.into())
            .decrypt(&XNonce::from(*nonce), Payload { msg: sealed, aad: aad.as_bytes() })
            .map_err(|_| OpenError::Refused(id.to_owned()))?;
        String::from_utf8(plain).map(SecretString::from).map_err(|_| OpenError::Malformed)
    }

    /// True when the value is sealed with a key that no longer seals, and should be sealed again.
    pub fn is_stale(&self, sealed: &str) -> bool {
        split(sealed).is_none_or(|(id, _)| id != self.sealing_id())
    }

    /// A known text, sealed. Kept in the database, it tells a wrong key at the start.
    pub fn check_value(&self) -> String {
        self.seal(CHECK_TEXT, CHECK_PLACE)
    }

    /// Fails unless this ring opens the kept [`check_value`](Self::check_value).
    pub fn check(&self, kept: &str) -> Result<(), OpenError> {
        let plain = self.open(kept, CHECK_PLACE)?;
        if plain.expose_secret() == CHECK_TEXT { Ok(()) } else { Err(OpenError::Malformed) }
    }
}

fn split(sealed: &str) -> Option<(&str, &str)> {
    let (version, rest) = sealed.split_once('.')?;
    if version == VERSION { rest.split_once('.') } else { None }
}

fn bound(id: &str, place: &str) -> String {
    format!("{VERSION}.{id}.{place}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(ids: &[&str]) -> SecretRing {
        let parts: Vec<_> = ids.iter().map(|id| SecretRing::generate(id)).collect();
        SecretRing::parse(&parts.join(",")).unwrap()
    }

    #[test]
    fn a_value_opens_in_its_own_place_only() {
        let ring = ring(&["k"]);
        let sealed = ring.seal("hunter2 ü", "relays/password/1");
        assert_eq!(ring.open(&sealed, "relays/password/1").unwrap().expose_secret(), "hunter2 ü");
        let elsewhere = ring.open(&sealed, "relays/password/2").unwrap_err();
        assert_eq!(elsewhere, OpenError::Refused("k".into()));
    }

    #[test]
    fn the_same_text_is_never_sealed_to_the_same_bytes() {
        let ring = ring(&["k"]);
        assert_ne!(ring.seal("a", "p"), ring.seal("a", "p"));
    }

    #[test]
    fn another_key_under_the_same_id_is_refused_and_an_absent_one_is_named() {
        let sealed = ring(&["k"]).seal("a", "p");
        assert_eq!(ring(&["k"]).open(&sealed, "p").unwrap_err(), OpenError::Refused("k".into()));
        assert_eq!(ring(&["x"]).open(&sealed, "p").unwrap_err(), OpenError::UnknownKey("k".into()));
    }

    #[test]
    fn after_a_turn_the_old_key_opens_the_new_one_seals_and_old_values_are_stale() {
        let (old, new) = (SecretRing::generate("old"), SecretRing::generate("new"));
        let sealed = SecretRing::parse(&old).unwrap().seal("a", "p");
        let ring = SecretRing::parse(&format!("{new},{old}")).unwrap();
        assert_eq!(ring.open(&sealed, "p").unwrap().expose_secret(), "a");
        assert!(ring.is_stale(&sealed));
        assert!(!ring.is_stale(&ring.seal("a", "p")));
    }

    #[test]
    fn rubbish_and_altered_values_are_errors() {
        let ring = ring(&["k"]);
        for text in ["", "v1", "v1.k", "v1.k.", "v1.k.AAAA", "v2.k.AAAA", "v1.k.#", "plain"] {
            assert_eq!(ring.open(text, "p").unwrap_err(), OpenError::Malformed, "{text}");
        }
        let mut sealed = ring.seal("abc", "p");
        let last = if sealed.pop() == Some('A') { 'Q' } else { 'A' };
        sealed.push(last);
        assert!(ring.open(&sealed, "p").is_err());
    }

    #[test]
    fn the_kept_check_value_tells_a_wrong_key() {
        let right = ring(&["k"]);
        assert_eq!(right.check(&right.check_value()), Ok(()));
        assert!(ring(&["k"]).check(&right.check_value()).is_err());
    }
}
