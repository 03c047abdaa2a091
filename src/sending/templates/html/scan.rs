//! The HTML tokenizer's states, as far as they decide what a variable may do (HTML Standard
//! §13.2.5, reduced). It reads the author's text, not the data.

use super::super::filters::is_safe_scheme;

/// Where in the HTML we are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    Text,
    /// Behind `<`.
    Open,
    TagName(String),
    /// Among the attributes of this tag.
    InTag(String),
    AttrName(String, String),
    AfterAttrName(String, String),
    BeforeValue(String, String),
    Value(Value),
    /// In an end tag.
    Closing,
    /// Behind `<!`, with what stood there since.
    Declaration(String),
    /// The first three characters, and the dashes just seen.
    Comment(String, u8),
    /// Up to the next `>` nothing counts.
    Bogus,
    /// In an element whose content is not markup; and what may be the beginning of its end tag.
    Raw(String, String),
}

/// In the value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Value {
    tag: String,
    /// Absent: without quotes.
    quote: Option<char>,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Plain,
    Link(Link),
    /// Many links: each variable may begin one.
    Links,
    Css,
    Code,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Link {
    /// It may still turn out to be the scheme: what stood there, and whether some was variable.
    Begins {
        literal: String,
        variable: bool,
    },
    Path,
    Query,
    /// Behind a scheme that variables must not speak in.
    Forbidden,
}

/// What becomes of a variable at some place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hole {
    Escaped,
    Guarded(&'static str),
    InQuery,
    Refused(&'static str),
}

const UNQUOTED: Hole = Hole::Refused("put the attribute's value in quotes");
const IN_TAG: Hole =
    Hole::Refused("a variable cannot make a tag or an attribute: only text and quoted values");
const IN_CODE: Hole = Hole::Refused("a variable cannot stand in a script");
const IN_SCHEME: Hole = Hole::Refused("a variable cannot stand behind this link's scheme");

impl State {
    /// One character of the author's. `Err` says what is wrong with it.
    pub fn step(self, c: char) -> Result<Self, &'static str> {
        Ok(match self {
            Self::Text if c == '<' => Self::Open,
            Self::Text => Self::Text,
            Self::Open => match c {
                '/' => Self::Closing,
                '!' => Self::Declaration(String::new()),
                '?' => Self::Bogus,
                '<' => Self::Open,
                c if c.is_ascii_alphabetic() => Self::TagName(c.to_ascii_lowercase().to_string()),
                _ => Self::Text,
            },
            Self::TagName(tag) => match c {
                '>' => content(tag),
                c if c.is_ascii_whitespace() || c == '/' => Self::InTag(tag),
                c => Self::TagName(pushed(tag, c)),
            },
            Self::InTag(tag) => match c {
                '>' => content(tag),
                c if c.is_ascii_whitespace() || c == '/' => Self::InTag(tag),
                c => Self::AttrName(tag, c.to_ascii_lowercase().to_string()),
            },
            Self::AttrName(tag, name) => match c {
                '>' => content(tag),
                '/' => Self::InTag(tag),
                '=' => Self::BeforeValue(tag, name),
                c if c.is_ascii_whitespace() => Self::AfterAttrName(tag, name),
                c => Self::AttrName(tag, pushed(name, c)),
            },
            Self::AfterAttrName(tag, name) => match c {
                '=' => Self::BeforeValue(tag, name),
                c if c.is_ascii_whitespace() => Self::AfterAttrName(tag, name),
                c => return Self::InTag(tag).step(c),
            },
            Self::BeforeValue(tag, name) => match c {
                '>' => content(tag),
                '"' | '\'' => Self::Value(Value { kind: kind(&tag, &name), tag, quote: Some(c) }),
                c if c.is_ascii_whitespace() => Self::BeforeValue(tag, name),
                c => {
                    let value = Value { kind: kind(&tag, &name), tag, quote: None };
                    return Self::Value(value).step(c);
                }
            },
            Self::Value(value) => return value.step(c),
            Self::Closing | Self::Bogus if c == '>' => Self::Text,
            Self::Closing => Self::Closing,
            Self::Bogus => Self::Bogus,
            Self::Declaration(seen) => match (seen.as_str(), c) {
                ("", '-') => Self::Declaration("-".to_owned()),
                ("-", '-') => Self::Comment(String::new(), 0),
                (_, '>') => Self::Text,
                _ => Self::Bogus,
            },
            Self::Comment(head, dashes) => comment(head, dashes, c),
            Self::Raw(tag, tail) => raw(tag, tail, c),
        })
    }

    /// A variable stands here: what becomes of it, and the state behind it.
    pub fn hole(self) -> (Self, Hole) {
        match self {
            Self::Text => (Self::Text, Hole::Escaped),
            // Behind a variable nothing at the beginning counts as the beginning.
            Self::Comment(..) => (Self::Comment("...".to_owned(), 0), Hole::Escaped),
            Self::Value(value) => value.hole(),
            Self::Raw(tag, _) => {
                let hole = match tag.as_str() {
                    "style" => Hole::Guarded("css_value"),
                    "title" | "textarea" => Hole::Escaped,
                    _ => IN_CODE,
                };
                (Self::Raw(tag, String::new()), hole)
            }
            Self::BeforeValue(tag, name) => (Self::BeforeValue(tag, name), UNQUOTED),
            other => (other, IN_TAG),
        }
    }

    /// The place behind two ways that meet again, if it is one.
    pub fn join(self, other: Self) -> Option<Self> {
        if self == other {
            return Some(self);
        }
        // Whether an attribute was written or not, the tag goes on. A name that is then continued
        // is read as a new one, where no variable may stand.
        match (self.tag(), other.tag()) {
            (Some(one), Some(two)) if one == two => Some(Self::InTag(one.to_owned())),
            _ => None,
        }
    }

    fn tag(&self) -> Option<&str> {
        match self {
            Self::TagName(tag)
            | Self::InTag(tag)
            | Self::AttrName(tag, _)
            | Self::AfterAttrName(tag, _) => Some(tag),
            _ => None,
        }
    }
}

impl Value {
    fn step(mut self, c: char) -> Result<State, &'static str> {
        let ends = match self.quote {
            Some(quote) => c == quote,
            None => c == '>' || c.is_ascii_whitespace(),
        };
        if ends {
            return if c == '>' && self.quote.is_none() {
                Ok(content(self.tag))
            } else {
                Ok(State::InTag(self.tag))
            };
        }
        if let Kind::Link(link) = self.kind {
            self.kind = Kind::Link(link.step(c)?);
        }
        Ok(State::Value(self))
    }

    fn hole(mut self) -> (State, Hole) {
        let hole = match &mut self.kind {
            _ if self.quote.is_none() => UNQUOTED,
            Kind::Plain | Kind::Link(Link::Path) => Hole::Escaped,
            Kind::Link(Link::Begins { variable, .. }) => {
                *variable = true;
                Hole::Guarded("safe_url")
            }
            Kind::Link(Link::Query) => Hole::InQuery,
            Kind::Link(Link::Forbidden) => IN_SCHEME,
            Kind::Links => Hole::Guarded("safe_url"),
            Kind::Css => Hole::Guarded("css_value"),
            Kind::Code => IN_CODE,
        };
        (State::Value(self), hole)
    }
}

impl Link {
    fn step(self, c: char) -> Result<Self, &'static str> {
        Ok(match (self, c) {
            (Self::Begins { variable: true, .. }, ':') => {
                return Err("a variable cannot be the scheme of a link, nor a part of it");
            }
            (Self::Begins { literal, .. }, ':') => match is_safe_scheme(literal.trim()) {
                true => Self::Path,
                false => Self::Forbidden,
            },
            (Self::Begins { .. } | Self::Path, '?') => Self::Query,
            (Self::Begins { .. }, '/' | '#') | (Self::Query, '#') => Self::Path,
            (Self::Begins { literal, variable }, c) => {
                Self::Begins { literal: pushed(literal, c), variable }
            }
            (link, _) => link,
        })
    }
}

fn pushed(mut text: String, c: char) -> String {
    text.push(c.to_ascii_lowercase());
    text
}

/// The content of an element that has just been opened.
fn content(tag: String) -> State {
    const RAW: &[&str] = &[
        "script",
        "style",
        "title",
        "textarea",
        "xmp",
        "iframe",
        "noembed",
        "noframes",
        "plaintext",
    ];
    if RAW.contains(&tag.as_str()) { State::Raw(tag, String::new()) } else { State::Text }
}

fn kind(tag: &str, attribute: &str) -> Kind {
    // Word's own elements: `v:href`, `xlink:href`.
    let name = attribute.rsplit(':').next().unwrap_or_default();
    match name {
        "href" | "src" | "action" | "formaction" | "background" | "cite" | "poster" | "data"
        | "longdesc" | "ping" | "codebase" | "classid" | "manifest" | "icon" | "dynsrc"
        | "lowsrc" | "profile" => {
            Kind::Link(Link::Begins { literal: String::new(), variable: false })
        }
        "srcset" | "imagesrcset" | "archive" => Kind::Links,
        "style" => Kind::Css,
        "srcdoc" => Kind::Code,
        "content" if tag == "meta" => Kind::Code,
        _ if name.starts_with("on") => Kind::Code,
        _ => Kind::Plain,
    }
}

/// What a conditional comment hides is markup to Word: `<!--[if mso]> … <![endif]-->`.
fn comment(mut head: String, dashes: u8, c: char) -> State {
    if head.len() < 3 {
        head.push(c.to_ascii_lowercase());
    }
    match (head.as_str(), c) {
        ("[if", _) => State::Bogus,
        (">" | "->", '>') => State::Text,
        (_, '>') if dashes >= 2 => State::Text,
        (_, '-') => State::Comment(head, (dashes + 1).min(2)),
        _ => State::Comment(head, 0),
    }
}

fn raw(tag: String, mut tail: String, c: char) -> State {
    let end = format!("</{tag}");
    if tail == end {
        match c {
            '>' => return State::Text,
            c if c.is_ascii_whitespace() || c == '/' => return State::Closing,
            _ => {}
        }
    }
    tail.push(c.to_ascii_lowercase());
    if !end.starts_with(&tail) {
        tail.clear();
        if c == '<' {
            tail.push(c);
        }
    }
    State::Raw(tag, tail)
}
