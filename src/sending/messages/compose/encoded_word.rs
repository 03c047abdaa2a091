//! Encoded words: any text as ASCII in a header (RFC 2047).

use base64::{Engine, prelude::BASE64_STANDARD};

const START: &str = "=?utf-8?B?";
const END: &str = "?=";

/// RFC 2047 §2.
const LONGEST: usize = 75;

/// Room in which any one character fits.
pub(super) const SHORTEST: usize = START.len() + END.len() + 8;

/// As much of the text as one encoded word of at most `room` octets holds, and the rest. Cuts
/// between characters only (§5), so that each word can be read by itself.
pub(super) fn first(text: &str, room: usize) -> (String, &str) {
    let room = room.clamp(SHORTEST, LONGEST) - START.len() - END.len();
    let at = text.floor_char_boundary(room / 4 * 3);
    let (now, later) = text.split_at(at);
    (format!("{START}{}{END}", BASE64_STANDARD.encode(now)), later)
}
