//! The template language: minijinja, closed. No other file can be reached (the engine is built
//! without includes), undefined variables are errors, and fuel bounds time and memory.

use std::sync::LazyLock;

use minijinja::{
    AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior,
    value::{Value, ValueKind},
};

use super::{data::Assumed, filters};

/// What one part may use up: an instruction costs 1, and so do 64 bytes that are made. So no part
/// takes more than 16 MiB of memory, or some tens of milliseconds.
const FUEL: u64 = 250_000;

/// The name of the part in which values are escaped.
pub(super) const HTML: &str = "html";

static ENGINE: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut engine = Environment::new();
    engine.set_undefined_behavior(UndefinedBehavior::Strict);
    engine.set_fuel(Some(FUEL));
    // Errors then know their place.
    engine.set_debug(true);
    engine.set_recursion_limit(64);
    engine.set_auto_escape_callback(|part| match part {
        HTML => AutoEscape::Html,
        _ => AutoEscape::None,
    });
    engine.set_formatter(print);
    engine.remove_global("debug");
    engine.remove_filter("pprint");
    for name in ["e", "escape"] {
        engine.add_filter(name, filters::escape);
    }
    engine.add_filter("safe_url", filters::safe_url);
    engine.add_filter("css_value", filters::css_value);
    engine
});

pub(super) fn engine() -> &'static Environment<'static> {
    &ENGINE
}

/// Prints a value. What has no form for a reader is a mistake of the template or of its data.
fn print(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    let refuse = |what: &str| {
        let hint = format!("{what} cannot be printed");
        Err(Error::new(ErrorKind::InvalidOperation, hint))
    };
    match value.kind() {
        ValueKind::Undefined => return Ok(()),
        ValueKind::None => return refuse("null"),
        ValueKind::Map if value.downcast_object_ref::<Assumed>().is_none() => {
            return refuse("an object");
        }
        ValueKind::Seq | ValueKind::Iterable => return refuse("a list (loop over it, or join it)"),
        _ => {}
    }
    let text = value.to_string();
    let html = matches!(state.auto_escape(), AutoEscape::Html) && !value.is_safe();
    out.write_str(&if html { filters::html_escaped(&text) } else { text })?;
    Ok(())
}
