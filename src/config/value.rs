//! What a text means. Each parser gives the reason of a refusal as the end of a sentence.

use std::{ops::RangeInclusive, str::FromStr, time::Duration};

/// A whole number within bounds.
pub(super) fn whole<T>(bounds: RangeInclusive<u32>) -> impl Fn(&str) -> Result<T, String>
where
    T: TryFrom<u32>,
{
    move |text| {
        let number = text.parse::<u32>().ok().filter(|number| bounds.contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| {
            format!("must be a whole number from {} to {}", bounds.start(), bounds.end())
        })
    }
}

/// `true` or `false`, and nothing that only looks like them.
pub(super) fn flag(text: &str) -> Result<bool, String> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("must be true or false".to_owned()),
    }
}

/// A span of time within bounds, in seconds: `1.5`, or with a unit as in `250ms`, `30m`, `5d`.
pub(super) fn span(bounds: RangeInclusive<f64>) -> impl Fn(&str) -> Result<Duration, String> {
    move |text| {
        let seconds = seconds(text).filter(|seconds| bounds.contains(seconds));
        seconds.map(Duration::from_secs_f64).ok_or_else(|| {
            let (least, most) = (bounds.start(), bounds.end());
            format!(
                "must be a time from {least} to {most} seconds (a unit ms, s, m, h, d may follow)"
            )
        })
    }
}

fn seconds(text: &str) -> Option<f64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    digits.parse::<f64>().ok().filter(|_| plain).map(|number| number * unit)
}

/// Anything with a `FromStr` whose own error says too little or too much.
pub(super) fn parsed<T: FromStr>(what: &'static str) -> impl Fn(&str) -> Result<T, String> {
    move |text| text.parse().map_err(|_| format!("must be {what}"))
}

/// One word of a closed list.
pub(super) fn word<T: Copy>(
    words: &'static [(&'static str, T)],
) -> impl Fn(&str) -> Result<T, String> {
    move |text| {
        words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
            let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            format!("must be one of {}", known.join(", "))
        })
    }
}

/// A comma-separated list; empty parts do not count.
pub(super) fn list<T: FromStr>(what: &'static str) -> impl Fn(&str) -> Result<Vec<T>, String> {
    move |text| {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        parts.map(|part| part.parse().map_err(|_| format!("{part:?} is not {what}"))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_bounds_and_cannot_overflow() {
        let port = whole::<u16>(0..=65_535);
        assert_eq!(port("65535"), Ok(65_535));
        for wrong in ["65536", "-1", "1.0", "0x10", "99999999999999999999999", "", " 1", "1e3"] {
            assert!(port(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn spans_take_fractions_and_units_within_bounds() {
        let span = span(0.05..=864_000.0);
        let cases =
            [("0.5", 500), ("250ms", 250), ("30s", 30_000), ("2m", 120_000), ("5d", 432_000_000)];
        for (text, milliseconds) in cases {
            assert_eq!(span(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for wrong in ["0", "-1", "NaN", "inf", "1e400", "1e2", "5 d", "11d", "5w", "s", ".", ""] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn flags_are_the_two_literals() {
        assert_eq!(flag("true"), Ok(true));
        for wrong in ["True", "1", "yes", "on"] {
            assert!(flag(wrong).is_err(), "{wrong}");
        }
    }
}
