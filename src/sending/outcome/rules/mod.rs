//! The table, in the order of reading: the first rule that fits decides.

mod content;
mod rate;
mod recipient;
mod relay;
mod rest;
mod sender;
mod session;

use std::sync::LazyLock;

use super::rule::{Compiled, Rule};
use crate::outside::smtp::Phase::{
    self, Auth, Connect, Data, Dns, Dot, Ehlo, Greeting, Mail, Rcpt, Tls,
};

const ANY: &[Phase] = &[Dns, Connect, Tls, Greeting, Ehlo, Auth, Mail, Rcpt, Data, Dot];
/// Before MAIL: nobody has seen the message.
const SESSION: &[Phase] = &[Dns, Connect, Tls, Greeting, Ehlo, Auth];
/// From MAIL on.
const TRANSACTION: &[Phase] = &[Mail, Rcpt, Data, Dot];
/// Where a recipient may be refused; some servers look only after the dot.
const ADDRESSED: &[Phase] = &[Rcpt, Data, Dot];
const CONTENT: &[Phase] = &[Data, Dot];

/// What blames the relay comes before what blames the recipient, because its words are narrower
/// and its code is the same 550 5.7.1; rest rules by phase and first digit come last.
const TABLES: [&[Rule]; 8] = [
    session::RULES,
    recipient::EARLY,
    relay::RULES,
    sender::RULES,
    rate::RULES,
    recipient::RULES,
    content::RULES,
    rest::RULES,
];

pub(super) fn all() -> &'static [Compiled] {
    static ALL: LazyLock<Vec<Compiled>> =
        LazyLock::new(|| TABLES.iter().copied().flatten().map(Compiled::new).collect());
    &ALL
}
