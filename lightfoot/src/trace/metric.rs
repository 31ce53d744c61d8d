//! Reads software metrics as users write them.
//!
//! | written | what adds up |
//! |---|---|
//! | `fn:NAME`, `fn:FILE!NAME` | calls of all functions of that name, of FILE alone |
//! | `fn:FILE+0xADDRESS` | calls of a function without a symbol, by the name that reports show |
//! | `fn:NAME@*`, `fn:NAME@0xADDRESS` | calls of each, or of the one at that address |
//! | `fn:ns::*` | calls of what matches; `*` and `?` match, and each name is a metric |
//! | `var:NAME`, `var:LIBRARY!NAME` | writes that touch a variable |
//! | `addr:START-END`, `addr:START+BYTES` | writes that touch these addresses |
//! | `line:FILE:LINE` | arrivals at the code of a source line |
//!
//! A name without a file is searched in the program first, then in the libraries that it needs; a
//! pattern in the program only. A library that the program loads later is given by its path. C++
//! and Rust names are written with or without arguments and type parameters. **Leaves out** whether
//! anything has the name: [`target`](super::target) checks that.

use anyhow::{bail, Result};
use std::fmt;
use std::ops::Range;

/// What a metric counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spec {
    /// Calls.
    Function(Named),
    /// Writes.
    Variable(Named),
    /// Writes.
    Addresses(Range<u64>),
    /// Arrivals.
    Line(String, u32),
}

/// A name, and the file in which it is searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The end of a library's path, or a name such as `libz`; or the end of a source file's path.
    pub library: Option<String>,
    /// The name, or a pattern.
    pub name: String,
    /// The selection among functions of that name.
    pub which: Which,
}

/// A selection among functions that have one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Which {
    /// All of them are one metric.
    #[default]
    All,
    /// Each of them is a metric.
    Each,
    /// The one at an address of its file.
    At(u64),
}

impl Named {
    fn parse(text: &str) -> Named {
        let (library, name) = match text.split_once('!') {
            Some((library, name)) => (Some(library.into()), name),
            None => (None, text),
        };
        let hexadecimal = |digits: &str| u64::from_str_radix(digits, 16).ok();
        let which = |text: &str| match text {
            "*" => Some(Which::Each),
            text => text.strip_prefix("0x").and_then(hexadecimal).map(Which::At),
        };
        let split = name.rsplit_once('@').and_then(|(name, end)| Some((name, which(end)?)));
        let (name, which) = split.unwrap_or((name, Which::All));
        Named { library, name: name.into(), which }
    }

    /// Whether the name is a pattern.
    pub fn is_pattern(&self) -> bool {
        self.name.contains(['*', '?'])
    }
}

impl Spec {
    /// Reads one metric.
    ///
    /// # Errors
    /// If it has none of the forms above.
    pub fn parse(text: &str) -> Result<Spec> {
        let (kind, rest) = text.split_once(':').unwrap_or(("", text));
        if rest.is_empty() {
            bail!(
                "{text:?} is no software metric: write fn:NAME, var:NAME, addr:START-END or line:FILE:LINE"
            );
        }
        match kind {
            "fn" => Ok(Spec::Function(Named::parse(rest))),
            "var" => Ok(Spec::Variable(Named::parse(rest))),
            "addr" => match addresses(rest) {
                Some(range) => Ok(Spec::Addresses(range)),
                None => bail!("{text:?}: write addresses as addr:0x1000-0x1040 or addr:0x1000+64"),
            },
            "line" => match rest.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?))) {
                Some((file, line)) => Ok(Spec::Line(file.into(), line)),
                None => bail!("{text:?}: write a line as line:FILE:LINE"),
            },
            _ => bail!(
                "{text:?} is no software metric: write fn:NAME, var:NAME, addr:START-END or line:FILE:LINE"
            ),
        }
    }

    /// Reads a list of metrics with commas.
    ///
    /// # Errors
    /// The errors of [`Spec::parse`].
    pub fn list(text: &str) -> Result<Vec<Spec>> {
        parts(text).into_iter().filter(|part| !part.is_empty()).map(Spec::parse).collect()
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(library) = &self.library {
            write!(f, "{library}!")?;
        }
        f.write_str(&self.name)?;
        match self.which {
            Which::All => Ok(()),
            Which::Each => f.write_str("@*"),
            Which::At(address) => write!(f, "@{address:#x}"),
        }
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Spec::Function(named) => write!(f, "fn:{named}"),
            Spec::Variable(named) => write!(f, "var:{named}"),
            Spec::Addresses(range) => write!(f, "addr:{:#x}-{:#x}", range.start, range.end),
            Spec::Line(file, line) => write!(f, "line:{file}:{line}"),
        }
    }
}

/// The metrics of a list. A comma between brackets belongs to a name, as in `ns::f(int, int)`,
/// unless the next metric begins behind it.
fn parts(text: &str) -> Vec<&str> {
    let in_identifier = |last: char| last.is_alphanumeric() || last == '_';
    let begins = |rest: &str| ["fn:", "var:", "addr:", "line:"].iter().any(|kind| rest.starts_with(kind));
    let (mut parts, mut start, mut depth, mut operator_end) = (Vec::new(), 0, 0_i32, 0);
    for (at, byte) in text.bytes().enumerate() {
        // The signs of `operator>>` are no brackets.
        if at < operator_end {
            continue;
        }
        match byte {
            b'(' | b'<' => depth += 1,
            b')' | b'>' => depth -= 1,
            b',' if depth <= 0 || begins(&text[at + 1..]) => {
                parts.push(&text[start..at]);
                (start, depth) = (at + 1, 0);
            }
            b'o' if !text[..at].ends_with(in_identifier) => {
                operator_end = at + operator_bytes(&text[at..]).unwrap_or(0);
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// The bytes of the name of an operator that is written with brackets, if `text` begins with one.
fn operator_bytes(text: &str) -> Option<usize> {
    /// Longer signs come before those that begin them.
    const SIGNS: &[&str] = &["<<=", ">>=", "<=>", "->*", "<<", ">>", "<=", ">=", "->", "()", "<", ">"];
    let rest = text.strip_prefix("operator")?;
    let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign))?;
    Some(text.len() - rest.len() + sign.len())
}

fn addresses(text: &str) -> Option<Range<u64>> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let range = match (text.split_once('-'), text.split_once('+')) {
        (Some((start, end)), None) => number(start)?..number(end)?,
        (None, Some((start, bytes))) => number(start)?..number(start)?.checked_add(number(bytes)?)?,
        _ => return None,
    };
    (range.start < range.end).then_some(range)
}

/// Whether `name` matches `pattern`, in which `*` stands for any text and `?` for one character.
/// Cost: linear, unless the pattern has many stars.
pub fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(&c) if c == b'?' || c == name[n] => (p, n) = (p + 1, n + 1),
            _ => match &mut star {
                Some((at, from)) => {
                    *from += 1;
                    (p, n) = (*at + 1, *from);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let all = "fn:main,fn:libz.so.1!deflate*,fn:a.c!f@*,fn:f@0x1139,fn:ns::f(int, char),fn:operator<,\
                   fn:S<int, char>::m,var:counter,addr:0x1000-0x1040,line:src/a.c:17";
        let specs = Spec::list(all).unwrap();
        let again: Vec<String> = specs.iter().map(Spec::to_string).collect();
        assert_eq!(again.join(","), all);
        assert_eq!(Spec::parse("addr:16+4").unwrap(), Spec::Addresses(16..20));
        let operators = [
            "fn:libstdc++!std::operator>><char, std::char_traits >",
            "fn:operator->",
            "fn:A::operator()(int, int)",
            "fn:cooperator<int, int>::m",
            "fn:operator<=><int, int>",
        ];
        let specs: Vec<String> =
            Spec::list(&operators.join(",")).unwrap().iter().map(Spec::to_string).collect();
        assert_eq!(specs, operators);
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_its_text() {
        for text in ["main", "fn:", "addr:9-3", "addr:x+1", "line:a.c", "line:a.c:x", "call:main"] {
            let error = Spec::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{text:?}")), "{error}");
        }
    }

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, name) in
            [("*", ""), ("BZ2_*", "BZ2_bzRead"), ("*a*b", "xaxbab"), ("a?c", "abc"), ("a", "a")]
        {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("a?", "a"), ("*b", "ba"), ("a*c*e", "abcd"), ("", "a")] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }
}
