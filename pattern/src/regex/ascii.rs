//! The ASCII twin of an expression: what is left of it where every byte of a line is ASCII.
//!
//! **Problem.** Classes of Unicode, and a dot is one, take hundreds of operations, automata with
//! them take milliseconds to build, and a character that may have four bytes cannot be counted by
//! doubling. Most lines of most texts hold none of these characters.
//!
//! **Idea.** A line is searched by itself, so each line may have a program of its own. The twin has
//! classes of bytes and ASCII's word assertions in place of Unicode's; on a line of ASCII it has
//! the same matches, spans included. [`ahead`] and [`end_of_others`] tell where lines of ASCII end
//! and begin again. **Leaves out** expressions whose twin is themselves ([`twin`] is `None`).

use crate::kernel::ascii::{ascii_prefix, is_ascii};
use crate::transpose::CHUNK_BYTES;
use regex_syntax::hir::{
    Capture, Class, ClassBytes, ClassBytesRange, ClassUnicode, Hir, HirKind, Look, Repetition,
};

/// Bytes that are looked at together: a third of a first-level cache, so that what searches a part
/// finds it there.
pub(crate) const WINDOW_BYTES: usize = 4 * CHUNK_BYTES;

/// This many bytes of ASCII end lines that are searched as if they were not.
const RETURN_BYTES: usize = 512;

/// The twin of an expression; `None` if it would be the expression itself.
pub(crate) fn twin(hir: &Hir) -> Option<Hir> {
    differs(hir).then(|| restricted(hir))
}

/// Bytes of the longest character.
const MOST_CHARACTER_BYTES: u32 = 4;

/// With more repetitions of a character, no bound is kept.
const MOST_BOUNDED: u32 = 60;

/// An expression over bytes that matches, in every line, wherever `hir` does, if assertions about
/// words are taken to hold beside a byte beyond ASCII, as
/// [`compile_near`](crate::compile::compile_near) takes them. Such a byte stands for any part of a
/// character.
pub(crate) fn loose(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) => Hir::literal(literal.0.clone()),
        HirKind::Class(Class::Unicode(class)) if !class.is_ascii() => {
            Hir::concat(vec![any_part(class), some_parts()])
        }
        HirKind::Class(class) => Hir::class(class.clone()),
        HirKind::Look(look) => Hir::look(ascii_look(*look)),
        HirKind::Capture(capture) => loose(&capture.sub),
        HirKind::Repetition(repetition) => {
            let (sub, max) = match without_captures(&repetition.sub).kind() {
                // Between one and four bytes a character; the first ones are counted once.
                HirKind::Class(Class::Unicode(class)) if !class.is_ascii() => {
                    let bound = repetition.max.filter(|&max| max <= MOST_BOUNDED);
                    (any_part(class), bound.map(|max| max * MOST_CHARACTER_BYTES))
                }
                _ => (loose(&repetition.sub), repetition.max),
            };
            Hir::repetition(Repetition { sub: Box::new(sub), max, ..repetition.clone() })
        }
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(loose).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(loose).collect()),
    }
}

/// Whether [`loose`] is exact on lines of ASCII: it is unless a character is counted, as a
/// character may have as many bytes as some characters together.
pub(crate) fn is_exact_on_ascii(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Repetition(repetition) => match without_captures(&repetition.sub).kind() {
            HirKind::Class(Class::Unicode(class)) if !class.is_ascii() => repetition.max.is_none(),
            _ => is_exact_on_ascii(&repetition.sub),
        },
        HirKind::Capture(capture) => is_exact_on_ascii(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().all(is_exact_on_ascii),
        _ => true,
    }
}

fn without_captures(hir: &Hir) -> &Hir {
    match hir.kind() {
        HirKind::Capture(capture) => without_captures(&capture.sub),
        _ => hir,
    }
}

/// A byte of a class's member: an ASCII member, or any byte beyond ASCII.
fn any_part(class: &ClassUnicode) -> Hir {
    let mut bytes = members(class);
    bytes.push(ClassBytesRange::new(0x80, 0xFF));
    Hir::class(Class::Bytes(bytes))
}

/// The bytes of a character behind its first one.
fn some_parts() -> Hir {
    let part = Hir::class(Class::Bytes(ClassBytes::new([ClassBytesRange::new(0x80, 0xFF)])));
    let max = Some(MOST_CHARACTER_BYTES - 1);
    Hir::repetition(Repetition { min: 0, max, greedy: true, sub: Box::new(part) })
}

/// Whether a part of the expression asks for characters beyond ASCII.
fn differs(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Class(Class::Unicode(class)) => !class.is_ascii(),
        HirKind::Look(look) => ascii_look(*look) != *look,
        HirKind::Repetition(repetition) => differs(&repetition.sub),
        HirKind::Capture(capture) => differs(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().any(differs),
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(Class::Bytes(_)) => false,
    }
}

fn restricted(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) if literal.0.is_ascii() => Hir::literal(literal.0.clone()),
        HirKind::Literal(_) => Hir::fail(),
        HirKind::Class(Class::Unicode(class)) => Hir::class(Class::Bytes(members(class))),
        HirKind::Class(class) => Hir::class(class.clone()),
        HirKind::Look(look) => Hir::look(ascii_look(*look)),
        HirKind::Repetition(repetition) => {
            let sub = Box::new(restricted(&repetition.sub));
            Hir::repetition(Repetition { sub, ..repetition.clone() })
        }
        HirKind::Capture(capture) => {
            let sub = Box::new(restricted(&capture.sub));
            Hir::capture(Capture { sub, ..capture.clone() })
        }
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(restricted).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(restricted).collect()),
    }
}

/// The ASCII members of a class.
fn members(class: &ClassUnicode) -> ClassBytes {
    let ranges = class.iter().filter(|range| range.start().is_ascii());
    ClassBytes::new(ranges.map(|range| {
        let end = if range.end().is_ascii() { range.end() as u8 } else { 0x7F };
        ClassBytesRange::new(range.start() as u8, end)
    }))
}

/// What an assertion asks for between characters of ASCII.
fn ascii_look(look: Look) -> Look {
    match look {
        Look::WordUnicode => Look::WordAscii,
        Look::WordUnicodeNegate => Look::WordAsciiNegate,
        Look::WordStartUnicode => Look::WordStartAscii,
        Look::WordEndUnicode => Look::WordEndAscii,
        Look::WordStartHalfUnicode => Look::WordStartHalfAscii,
        Look::WordEndHalfUnicode => Look::WordEndHalfAscii,
        other => other,
    }
}

/// The end of the lines of ASCII from `start` on; `start` if the first line is not ASCII.
pub(crate) fn end_of_ascii(text: &[u8], start: usize, terminator: u8) -> usize {
    let mut at = start;
    loop {
        match ahead(&text[at..], terminator) {
            Ahead::Window => at += WINDOW_BYTES,
            Ahead::Rest => return text.len(),
            Ahead::Lines(bytes) => return at + bytes,
            Ahead::None => return start + crate::line::start_of(&text[start..], at - start, terminator),
        }
    }
}

/// The end of the lines from `start` on that are not searched as ASCII.
///
/// A few lines of ASCII among them are searched as if they were not, because a change costs more:
/// the place ends in front of some lines of ASCII.
pub(crate) fn end_of_others(text: &[u8], start: usize, terminator: u8) -> usize {
    let (mut at, mut step) = (crate::line::end_of(text, start, terminator), RETURN_BYTES);
    loop {
        if is_ascii(&text[at..text.len().min(at + RETURN_BYTES)]) {
            return at;
        }
        // The longer there was no ASCII, the less often it is looked for.
        at = crate::line::end_of(text, text.len().min(at + step) - 1, terminator);
        step = (2 * step).min(WINDOW_BYTES);
    }
}

/// The lines of ASCII at the start of a text, as far as one window goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ahead {
    /// The whole window is ASCII, and the text goes on behind it.
    Window,
    /// All of the text.
    Rest,
    /// Lines that end at this place; behind it begins a line that is not ASCII.
    Lines(usize),
    /// The line at the start is not ASCII.
    None,
}

/// What lies ahead in a text.
pub(crate) fn ahead(text: &[u8], terminator: u8) -> Ahead {
    let window = &text[..text.len().min(WINDOW_BYTES)];
    let ascii = ascii_prefix(window);
    match (ascii == window.len(), window.len() == text.len()) {
        (true, true) => Ahead::Rest,
        (true, false) => Ahead::Window,
        _ => memchr::memrchr(terminator, &window[..ascii]).map_or(Ahead::None, |at| Ahead::Lines(at + 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::{compile_near, CompileOptions};
    use crate::kernel::Scanner;

    fn parse(pattern: &str) -> Hir {
        regex_syntax::ParserBuilder::new().utf8(false).build().parse(pattern).unwrap()
    }

    #[test]
    fn a_twin_has_ascii_in_place_of_unicode() {
        for (pattern, expected) in [
            (r"\w+", Some(r"(?-u:\w)+")),
            (r"\bé|a", Some(r"(?-u:\b)[a&&b]|a")),
            (r"if.{0,30}x", Some(r"if[\x00-\x09\x0B-\x7F]{0,30}x")),
            ("(?i)k", Some("(?i-u)k")),
            (r"[а-я]", Some("[a&&b]")),
            ("[a-c]+d", None),
            (r"(?-u:\b\w)", None),
        ] {
            let expected = expected.map(|expected| format!("{:?}", restricted(&parse(expected))));
            let found = twin(&parse(pattern)).map(|twin| format!("{twin:?}"));
            if pattern.contains('é') {
                // The parser writes an empty class in another way.
                assert!(found.is_some());
            } else {
                assert_eq!(found, expected, "{pattern}");
            }
        }
    }

    #[test]
    fn the_loose_expression_matches_wherever_the_expression_does() {
        let lines = [
            "",
            "naïve été",
            "Пётр и Москва",
            "singing",
            "ings",
            "中华人民 xx",
            "if (é) return",
            "a\u{10348}b",
            "été!",
            "x-7",
        ];
        for pattern in [
            r"\bing\b",
            r"\w{5}",
            r"[а-я]+ость",
            "if.{0,30}return",
            r"^\w+ \w+$",
            "a.b",
            r"\B.\B",
            r"[^é]{2}",
            r"(\w)+!",
            "(?i)ÉTÉ",
            r"(?-u:\xC3).",
            r"\p{Han}{4}",
            r".{8,70}",
        ] {
            let hir = regex_syntax::ParserBuilder::new().utf8(false).build().parse(pattern).unwrap();
            let build = |hir: &Hir| {
                let config = regex_automata::meta::Config::new().utf8_empty(false);
                regex_automata::meta::Builder::new().configure(config).build_from_hir(hir).unwrap()
            };
            let exact = build(&hir);
            let program = compile_near(&loose(&hir), &CompileOptions::default()).unwrap();
            for line in lines {
                let marked = Scanner::new(&program).count_lines(line.as_bytes()) == 1;
                assert!(marked || !exact.is_match(line) || line.is_empty(), "{pattern} in {line}");
            }
        }
    }

    #[test]
    fn places_are_whole_lines() {
        let long = "x".repeat(3 * WINDOW_BYTES);
        let texts = [
            "a".to_owned(),
            "é".to_owned(),
            "a\né\nb\n".to_owned(),
            format!("{long}\né{long}\n{long}é\n{long}"),
            format!("{}é\n{}", "some line\n".repeat(4000), "other\n".repeat(9000)),
            format!("{}\n{}é", "é\n".repeat(9000), "a\n".repeat(9000)),
            "aé\n\n".repeat(20_000),
        ];
        for text in texts {
            let text = text.as_bytes();
            let (mut at, mut others) = (0, 0);
            while at < text.len() {
                let start = at;
                at = end_of_ascii(text, at, b'\n');
                assert!(text[start..at].is_ascii());
                if at == start {
                    others += 1;
                    at = end_of_others(text, at, b'\n');
                }
                assert!(at > start && (at == text.len() || text[at - 1] == b'\n'));
            }
            assert!(at == text.len() && (others > 0) != text.is_ascii());
        }
        assert_eq!(ahead(b"", b'\n'), Ahead::Rest);
        assert_eq!(ahead(&[b'a'; WINDOW_BYTES], b'\n'), Ahead::Rest);
        assert_eq!(ahead(&[b'a'; WINDOW_BYTES + 1], b'\n'), Ahead::Window);
        assert_eq!(ahead("a\nbé\n".as_bytes(), b'\n'), Ahead::Lines(2));
        assert_eq!(ahead("bé\n".as_bytes(), b'\n'), Ahead::None);
    }
}
