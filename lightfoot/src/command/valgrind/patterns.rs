//! Patterns of function names, such as those of `--toggle-collect`: quick tests before a name is
//! demangled.
//!
//! A program has tens of thousands of symbols, and demangling all of them takes longer than a short
//! benchmark runs. A name can match only if its symbol has all identifiers of the pattern, because
//! mangling keeps identifiers as they are. **Leaves out** the match itself, which compares
//! demangled names (`trace::metric::matches`).

use symbol::Wanted;

/// Quick tests that exclude most names of a symbol table, and most tables.
pub(super) struct Patterns<'a>(pub(super) Vec<&'a str>);

impl Wanted for Patterns<'_> {
    fn may_be_among(&self, strings: &[u8]) -> bool {
        self.0.iter().any(|pattern| {
            let longest = identifiers(pattern).max_by_key(|part| part.len()).unwrap_or_default();
            memchr::memmem::find(strings, longest.as_bytes()).is_some()
        })
    }

    fn is(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| may_match(name, pattern))
    }

    fn may_be_nameless(&self, file: &str) -> bool {
        let known = |c: char| "*?+x0123456789abcdef".contains(c) || file.contains(c);
        self.0.iter().any(|pattern| pattern.chars().all(known))
    }
}

/// Whether the demangled name of `symbol` can match `pattern`.
fn may_match(symbol: &str, pattern: &str) -> bool {
    identifiers(pattern).all(|part| symbol.contains(part))
}

/// The identifiers of a pattern that a mangled name contains unchanged.
fn identifiers(pattern: &str) -> impl Iterator<Item = &str> {
    let head = pattern.split(['(', '<', '{', '[', ' ', '~']).next().unwrap_or(pattern);
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    // Mangled names have letters of their own for operators.
    let head = if head.contains("operator") { "" } else { head };
    head.split(move |c| !plain(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::metric::matches;

    #[test]
    fn names_of_symbols_are_excluded_early_and_never_wrongly() {
        let symbol = "_ZN5bench22__gungraun_wrapper_mod4sort17h0123456789abcdefE";
        assert!(may_match(symbol, "*::__gungraun_wrapper_mod::*"));
        assert!(matches("*::__gungraun_wrapper_mod::*", &symbol::demangle(symbol)));
        assert!(!may_match("_ZN5bench4sortE", "*::__gungraun_wrapper_mod::*"));
        assert!(may_match("_ZN1a1b4wrapEi", "a::b::wr*(int)") && may_match("main", "*"));
        assert!(may_match("_ZN1aplEii", "a::operator+(int, int)"));
    }

    #[test]
    fn tables_without_a_wanted_name_are_excluded_and_no_others() {
        let table = b"\0main\0_ZN1a1b4wrapEi\0_ZN1aplEii\0";
        for (pattern, may) in [
            ("a::b::wr*(int)", true),
            ("main", true),
            ("*", true),
            ("a::operator+*", true),
            ("a::c::wrong*", false),
            ("?ain", true),
        ] {
            assert_eq!(Patterns(vec![pattern]).may_be_among(table), may, "{pattern}");
            assert_eq!(Patterns(vec!["nothing", pattern]).may_be_among(table), may, "{pattern}");
        }
        for (pattern, may) in
            [("*", true), ("libc.so.6+0x*", true), ("libc*", true), ("*::wrap", false), ("main", false)]
        {
            assert_eq!(Patterns(vec![pattern]).may_be_nameless("libc.so.6"), may, "{pattern}");
        }
    }
}
