//! Patterns of `LIKE` and `ILIKE` as regular expressions.
//!
//! The translation is that of Arrow's kernel: `%` is any text, `_` any character, both with line
//! feeds, and a backslash takes the next character as it is. Arrow runs an expression of the
//! `regex` crate for all but the simplest patterns; which ones stay with Arrow is said here, since
//! a look at a row's first or last bytes is faster than any search.

/// What a pattern asks of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LikeKind {
    /// To be a string, to begin or to end with it: a comparison at a known place.
    Compared,
    /// To hold a string.
    Contains,
    /// Anything else, for which Arrow runs a regular expression.
    Expression,
}

/// What a pattern asks, if upper and lower case differ; otherwise Arrow compares only ASCII at a
/// known place, and searches for everything else with an expression.
pub(crate) fn kind(pattern: &str, ignores_case: bool) -> LikeKind {
    let is_plain = |text: &str| !text.contains(['%', '_', '\\']);
    let behind = pattern.strip_prefix('%');
    let before = pattern.strip_suffix('%');
    let between = behind.and_then(|text| text.strip_suffix('%'));
    if is_plain(pattern) || before.is_some_and(is_plain) || behind.is_some_and(is_plain) {
        return match ignores_case && !pattern.is_ascii() {
            true => LikeKind::Expression,
            false => LikeKind::Compared,
        };
    }
    match between.is_some_and(is_plain) && !ignores_case {
        true => LikeKind::Contains,
        false => LikeKind::Expression,
    }
}

/// The regular expression that matches the rows that are `LIKE` a pattern.
pub(crate) fn expression(pattern: &str, ignores_case: bool) -> String {
    let mut out = String::from(if ignores_case { "(?is)" } else { "(?s)" });
    let inner = match pattern.strip_prefix('%') {
        Some(rest) => rest,
        None => {
            out.push('^');
            pattern
        }
    };
    let mut characters = inner.chars();
    let mut ends_open = false;
    while let Some(character) = characters.next() {
        ends_open = false;
        match character {
            '\\' => push_literal(characters.next().unwrap_or('\\'), &mut out),
            '%' => {
                ends_open = true;
                out.push_str(".*");
            }
            '_' => out.push('.'),
            other => push_literal(other, &mut out),
        }
    }
    match ends_open {
        // Whatever follows: the search need not read it.
        true => out.truncate(out.len() - ".*".len()),
        false if inner.is_empty() && pattern.starts_with('%') => {}
        false => out.push('$'),
    }
    out
}

fn push_literal(character: char, out: &mut String) {
    if regex_syntax::is_meta_character(character) {
        out.push('\\');
    }
    out.push(character);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_translated_as_arrow_does() {
        for (pattern, expected) in [
            ("%google%", "(?s)google"),
            ("a%b", "(?s)^a.*b$"),
            ("a_b%", "(?s)^a.b"),
            (r"\%\_\a", "(?s)^%_a$"),
            (r"x\", r"(?s)^x\\$"),
            ("%.google.%", r"(?s)\.google\."),
            ("%%", "(?s)"),
            ("%", "(?s)"),
            ("", "(?s)^$"),
            (r"a\%", "(?s)^a%$"),
        ] {
            assert_eq!(expression(pattern, false), expected, "{pattern}");
        }
        assert_eq!(expression("%ab%", true), "(?is)ab");
    }

    #[test]
    fn comparisons_stay_with_arrow() {
        use LikeKind::*;
        for (pattern, sensitive, insensitive) in [
            ("google", Compared, Compared),
            ("goo%", Compared, Compared),
            ("%gle", Compared, Compared),
            ("%", Compared, Compared),
            ("%oog%", Contains, Expression),
            ("%köln", Compared, Expression),
            ("g%e", Expression, Expression),
            (r"goo\%", Expression, Expression),
            ("g_", Expression, Expression),
        ] {
            assert_eq!(kind(pattern, false), sensitive, "{pattern}");
            assert_eq!(kind(pattern, true), insensitive, "{pattern}");
        }
    }
}
