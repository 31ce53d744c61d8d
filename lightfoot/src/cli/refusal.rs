//! Describes an error in the command line in one line: the option, the values that it takes, and
//! the value that it was given.
//!
//! clap uses four lines. Every other error of lightfoot is one sentence, in lower case and without
//! a period, that names the value and the remedy. Errors that only clap can describe (a missing
//! operand, two options that exclude each other) keep clap's text.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::Error;
use std::error::Error as _;

/// The sentence; `None` for errors that keep clap's text.
pub fn refusal(error: &Error) -> Option<String> {
    let first = |kind| texts(error, kind).map(|all| all.join(" or "));
    let option = first(ContextKind::InvalidArg)?;
    match error.kind() {
        // Only flags: an operand too many keeps clap's text. A program whose name begins with a
        // hyphen needs `--` before it.
        ErrorKind::UnknownArgument if option.starts_with('-') => {
            let suggestion = first(ContextKind::SuggestedArg).map(|other| format!("did you mean {other}? "));
            let suggestion = suggestion.unwrap_or_default();
            Some(format!(
                "there is no option {option}: {suggestion}see --help, or put -- before a program of that name"
            ))
        }
        // The option's parser refused the value; its own sentence says what was expected.
        ErrorKind::ValueValidation => {
            let expected = expected(&error.source()?.to_string());
            Some(format!("{}: {expected}, got {}", name(&option), first(ContextKind::InvalidValue)?))
        }
        // The value is not one of those listed, or there is none: then clap reports an empty one.
        ErrorKind::InvalidValue => {
            let known = texts(error, ContextKind::ValidValue).unwrap_or_default();
            let given = first(ContextKind::InvalidValue).unwrap_or_default();
            let suggestion =
                first(ContextKind::SuggestedValue).map(|other| format!("; did you mean {other}?"));
            Some(match given.as_str() {
                "" => format!("{}: expected {} behind it", name(&option), value(&option)),
                _ => format!(
                    "{}: expected {}, got {given}{}",
                    name(&option),
                    alternatives(&known),
                    suggestion.unwrap_or_default()
                ),
            })
        }
        _ => None,
    }
}

fn texts(error: &Error, kind: ContextKind) -> Option<Vec<String>> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(vec![text.clone()]),
        ContextValue::Strings(texts) => Some(texts.clone()),
        _ => None,
    }
}

/// The option's name, such as `--top` of `--top <N>`.
fn name(option: &str) -> &str {
    option.split([' ', '=']).next().unwrap_or(option)
}

/// The name of the option's value, such as `N` of `--top <N>`.
fn value(option: &str) -> &str {
    let value = option.split_once('<').and_then(|(_, rest)| rest.split_once('>'));
    value.map_or("a value", |(value, _)| value)
}

/// Alternatives as text, such as `a, b or c`.
fn alternatives(known: &[String]) -> String {
    match known {
        [] => "another value".to_owned(),
        [one] => one.clone(),
        [others @ .., last] => format!("{} or {last}", others.join(", ")),
    }
}

/// The values that a parser expects. Our own parsers state them; those of the standard library
/// state the value that they found.
fn expected(problem: &str) -> String {
    let range = problem.rsplit_once(" is not in ").and_then(|(_, range)| range.split_once(".."));
    match range {
        Some((from, to)) if !to.is_empty() => format!("expected {from} to {}", to.trim_start_matches('=')),
        Some((from, _)) => format!("expected {from} or more"),
        None if problem.starts_with("expected ") => problem.to_owned(),
        None if problem.contains("too large") => "expected a smaller number".to_owned(),
        None if problem.contains("float") => "expected a number".to_owned(),
        None if problem.contains("digit") => "expected a whole number".to_owned(),
        None => problem.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;

    fn refused(line: &str) -> Option<String> {
        let words: Vec<std::ffi::OsString> = line.split(' ').map(std::ffi::OsString::from).collect();
        refusal(&Cli::read(&words).unwrap_err())
    }

    #[test]
    fn the_option_its_value_and_the_remedy_are_named() {
        for (line, sentence) in [
            ("lightfoot count --top -1 true", "--top: expected 0 or more, got -1"),
            ("lightfoot count --top x true", "--top: expected 0 or more, got x"),
            ("lightfoot tile --n 7", "--n: expected 8 to 8192, got 7"),
            ("lightfoot tile --n x", "--n: expected a whole number, got x"),
            ("lightfoot align --band x a b", "--band: expected a number, got x"),
            ("lightfoot diff --fail-above x a b", "--fail-above: expected a percentage such as 2%, got x"),
            (
                "lightfoot count --by functon true",
                "--by: expected function, library, opcode, line, thread, object, type, field or call, \
                 got functon; did you mean function?",
            ),
            ("lightfoot count --output", "--output: expected FILE behind it"),
        ] {
            assert_eq!(refused(line).as_deref(), Some(sentence), "{line}");
        }
        let said = refused("lightfoot count --formt json true").unwrap();
        assert!(said.starts_with("there is no option --formt: did you mean --format?"), "{said}");
        assert_eq!(refused("lightfoot count"), None);
    }
}
