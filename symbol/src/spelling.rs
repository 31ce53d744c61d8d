//! The spellings of a function's name that users may write.
//!
//! **What.** [`Spellings::of`] turns a name of a symbol table into its spellings: without arguments
//! and type parameters (`ns::S::m`), without arguments (`ns::S<int>::m`), as a demangler prints it
//! (`ns::S<int>::m(int)`), and as the file has it (`_ZN2ns1SIiE1mEi`). **Why this way.** Users know
//! the name in the source, but not the instances and overloads that the compiler made of it. The
//! shortest spelling selects all of them; a longer one selects fewer. **Leaves out** mangled names
//! of other languages than Rust and C++, which have one spelling: that of the file.

use crate::demangle::demangle;
use cpp_demangle::{DemangleOptions, Symbol};

/// Endings of functions that a compiler made as copies of another one. Parts of functions (`.cold`,
/// `.part.0`) are not copies and keep their endings.
const COPIES: [&str; 4] = [".constprop.", ".isra.", ".lto_priv.", ".llvm."];

/// A name in all its spellings, the shortest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spellings(Vec<String>);

impl Spellings {
    /// All spellings of a name of a symbol table.
    pub fn of(name: &str) -> Spellings {
        let own = original(name);
        let mut all = Vec::with_capacity(4);
        if let Ok(rust) = rustc_demangle::try_demangle(own) {
            all.push(without_parameters(&format!("{rust:#}")));
        } else if let Some(bare) = without_arguments(own) {
            all.extend([without_parameters(&bare), bare]);
        } else {
            all.push(own.to_owned());
        }
        all.extend([demangle(name), name.to_owned()]);
        all.dedup();
        Spellings(all)
    }

    /// The shortest spelling.
    pub fn shortest(&self) -> &str {
        &self.0[0]
    }

    /// Whether `name` is one of the spellings.
    pub fn include(&self, name: &str) -> bool {
        self.0.iter().any(|spelling| spelling == name)
    }

    /// The shortest spelling that `accepts` accepts.
    pub fn find(&self, accepts: impl Fn(&str) -> bool) -> Option<&str> {
        self.0.iter().map(String::as_str).find(|spelling| accepts(spelling))
    }
}

/// A quick test that excludes most names of a symbol table: whether `symbol` can have the spelling
/// `name` at all. Mangled names contain identifiers unchanged.
pub fn may_include(symbol: &str, name: &str) -> bool {
    let head = name.split('(').next().unwrap_or(name);
    let last = head.rsplit("::").next().unwrap_or(head).trim_start_matches('~');
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    last.is_empty() || last.starts_with("operator") || !last.chars().all(plain) || symbol.contains(last)
}

/// The name without an ending of [`COPIES`].
fn original(name: &str) -> &str {
    let end = COPIES.iter().filter_map(|ending| name.find(ending)).min();
    &name[..end.unwrap_or(name.len())]
}

/// A C++ name without arguments and return type; `None` if `name` is not a C++ name.
fn without_arguments(name: &str) -> Option<String> {
    let mangled = name.find(['.', '@']).map_or(name, |at| &name[..at]);
    let ending = &name[mangled.len()..];
    if !mangled.starts_with("_Z") {
        return None;
    }
    let options = DemangleOptions::new().no_params().no_return_type().hide_expression_literal_types();
    let bare = Symbol::new(mangled).ok()?.demangle_with_options(&options).ok()?;
    Some(bare.trim_end_matches(" const").to_owned() + ending)
}

/// A name without type parameters: `ns::S<int>::m` and `ns::f::<u32>` lose the angle brackets, and
/// `<ns::S as T>::m` becomes `ns::S::m`.
fn without_parameters(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        let operator = out.trim_end_matches(['<', '>', '-', '=']).ends_with("operator");
        let bracket = (c == '<' && !operator).then(|| closing(rest)).flatten();
        let Some(end) = bracket else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        };
        if out.is_empty() {
            let inside = &rest[1..end];
            out = without_parameters(self_type(inside));
        } else if out.ends_with("::") {
            out.truncate(out.len() - 2);
        }
        rest = &rest[end + 1..];
    }
    out
}

/// The position of the bracket that closes the one at the beginning of `text`.
fn closing(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            b'<' => depth += 1,
            // The arrow of a function's type closes nothing.
            b'>' if at > 0 && bytes[at - 1] == b'-' => {}
            b'>' if depth == 1 => return Some(at),
            b'>' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// `S` of `S as Trait`.
fn self_type(text: &str) -> &str {
    let mut depth = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'<' => depth += 1,
            // The arrow of a function's type closes nothing.
            b'>' if at > 0 && text.as_bytes()[at - 1] == b'-' => {}
            b'>' => depth -= 1,
            b' ' if depth == 0 && text[at..].starts_with(" as ") => return &text[..at],
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_spelt_as_people_write_them() {
        for (symbol, spellings) in [
            ("main", &["main"][..]),
            ("helper.constprop.0", &["helper", "helper.constprop.0"]),
            ("helper.cold", &["helper.cold"]),
            ("_ZN2ns2mkEi", &["ns::mk", "ns::mk(int)"]),
            ("_ZN2ns1S1mEv", &["ns::S::m", "ns::S::m()"]),
            ("_ZNK2ns1S1cEv", &["ns::S::c", "ns::S::c() const"]),
            ("_ZN2ns1SC1Ei", &["ns::S::S", "ns::S::S(int)"]),
            ("_ZN2ns4tmplIiEEiT_", &["ns::tmpl", "ns::tmpl<int>", "int ns::tmpl<int>(int)"]),
            ("_ZN2nslsEii", &["ns::operator<<"]),
            ("_ZN3foo3bar17h0123456789abcdefE", &["foo::bar"]),
            ("_RNvCskwGfYPst2Cb_3foo16example_function", &["foo::example_function"]),
            ("_RINvCskwGfYPst2Cb_3foo7genericmEB2_", &["foo::generic", "foo::generic::<u32>"]),
        ] {
            let all = Spellings::of(symbol);
            for spelling in spellings {
                assert!(all.include(spelling), "{symbol}: no {spelling} in {all:?}");
                assert!(may_include(symbol, spelling), "{symbol} {spelling}");
            }
            assert!(all.include(symbol));
            assert_eq!(all.shortest(), spellings[0]);
        }
        assert!(!may_include("_ZN2ns2mkEi", "ns::other") && may_include("_ZN2nslsEii", "ns::operator<<"));
    }

    #[test]
    fn brackets_leave_and_types_of_methods_stay() {
        for (name, plain) in [
            ("<foo::S as foo::T>::m", "foo::S::m"),
            ("<foo::V<u32>>::push", "foo::V::push"),
            ("<foo::V<fn(u8) -> u8> as core::fmt::Debug>::fmt", "foo::V::fmt"),
            ("ns::operator<", "ns::operator<"),
            ("ns::operator->", "ns::operator->"),
            ("std::vector<std::pair<int, int>, std::allocator<int>>::at", "std::vector::at"),
            ("broken<", "broken<"),
        ] {
            assert_eq!(without_parameters(name), plain);
        }
    }

    #[test]
    fn any_text_is_spelt() {
        let mut random = measure::random::Random::new(7);
        let letters: Vec<char> = "_ZNRSE019abm<>:(). -".chars().collect();
        for _ in 0..5000 {
            let mut name: String = ["_Z", "_R", ""][random.below(3)].into();
            name.extend((0..random.below(30)).map(|_| letters[random.below(letters.len())]));
            assert!(Spellings::of(&name).include(&name));
        }
    }
}
