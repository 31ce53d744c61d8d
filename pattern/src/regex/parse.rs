//! Parses patterns to one HIR with line semantics.
//!
//! Each pattern is parsed by itself, so that an error shows the user's text, and `a)|(b` is an
//! error. Then line semantics are applied: `^`, `$`, `\A` and `\z` are the ends of a line, no class
//! contains a byte that ends a line, and a literal with such a byte is refused. Then every match
//! lies within one line, so a whole buffer can be searched at once. Smart case considers all
//! patterns together. Source of the line semantics: those of grep and ripgrep.

use super::error::{Error, ErrorKind};
use super::options::{Boundary, Case, Options, Terminator, Unit};
use regex_syntax::ast::{self, Ast};
use regex_syntax::hir::{self, translate::TranslatorBuilder, Class, Hir, HirKind, Look};
use std::ops::Range;

/// Nested groups beyond this are refused: every stage recurses.
const NEST_LIMIT: u32 = 250;

/// The HIR of the alternation of all patterns.
pub(super) fn parse(patterns: &[String], options: &Options) -> Result<Hir, Error> {
    let alternatives = if is_plain(patterns, options) {
        patterns.iter().map(|pattern| Hir::literal(pattern.as_bytes())).collect()
    } else {
        translate_all(patterns, options)?
    };
    Ok(bounded(Hir::alternation(alternatives), options))
}

/// Whether all patterns match exactly their own bytes, so that thousands of words need no parsing.
fn is_plain(patterns: &[String], options: &Options) -> bool {
    let forbidden = |byte: u8| line_ends(options).contains(&byte) || Some(byte) == options.excluded;
    let plain = |pattern: &String| {
        (options.fixed_strings || !pattern.chars().any(regex_syntax::is_meta_character))
            && !pattern.bytes().any(forbidden)
    };
    options.case == Case::Sensitive && patterns.iter().all(plain)
}

/// The bytes that no match may contain because they end lines.
fn line_ends(options: &Options) -> &'static [u8] {
    match (options.unit, options.terminator) {
        (Unit::Text, _) => &[],
        (Unit::Line, Terminator::LineFeed) => b"\n",
        (Unit::Line, Terminator::CrLf) => b"\r\n",
        (Unit::Line, Terminator::Nul) => b"\0",
    }
}

fn translate_all(patterns: &[String], options: &Options) -> Result<Vec<Hir>, Error> {
    let parsed: Vec<Parsed> =
        patterns.iter().map(|pattern| Parsed::new(pattern, options)).collect::<Result<_, _>>()?;
    let insensitive = match options.case {
        Case::Sensitive => false,
        Case::Insensitive => true,
        Case::Smart => parsed.iter().any(|p| p.letters.any) && !parsed.iter().any(|p| p.letters.upper),
    };
    let mut groups = 0;
    let mut translated = Vec::with_capacity(parsed.len());
    for pattern in &parsed {
        let hir = pattern.translate(insensitive, options)?;
        let count = hir.properties().explicit_captures_len() as u32;
        translated.push(renumbered(hir, groups));
        groups += count;
    }
    Ok(translated)
}

/// A pattern's syntax, and the properties of its literals on which smart case depends.
struct Parsed<'p> {
    given: &'p str,
    text: String,
    ast: Ast,
    letters: Letters,
}

impl<'p> Parsed<'p> {
    fn new(given: &'p str, options: &Options) -> Result<Parsed<'p>, Error> {
        let text = if options.fixed_strings { regex_syntax::escape(given) } else { given.to_owned() };
        let mut parser = ast::parse::ParserBuilder::new();
        parser.nest_limit(NEST_LIMIT).octal(false).ignore_whitespace(options.ignore_whitespace);
        let ast =
            parser.build().parse(&text).map_err(|error| Error::syntax(given, error.span(), error.kind()))?;
        let letters = Letters::of(&ast);
        Ok(Parsed { given, text, ast, letters })
    }

    fn translate(&self, insensitive: bool, options: &Options) -> Result<Hir, Error> {
        let by_line = options.unit == Unit::Line;
        let hir = TranslatorBuilder::new()
            .utf8(options.utf8)
            .case_insensitive(insensitive)
            .multi_line(by_line || options.multi_line)
            .dot_matches_new_line(options.dot_matches_new_line)
            .line_terminator(options.dot_excludes())
            .crlf(options.terminator == Terminator::CrLf)
            .unicode(options.unicode)
            .build()
            .translate(&self.text, &self.ast)
            .map_err(|error| Error::syntax(self.given, error.span(), error.kind()))?;
        if let Some(byte) = options.excluded.filter(|&byte| asks_for(&hir, byte)) {
            return Err(self.refusal(ErrorKind::Excluded(byte), byte));
        }
        if !by_line {
            return Ok(hir);
        }
        within_line(hir, options).map_err(|byte| self.refusal(ErrorKind::LineEnd(byte), byte))
    }

    fn refusal(&self, kind: ErrorKind, byte: u8) -> Error {
        let shown = std::ascii::escape_default(byte);
        let message = match kind {
            ErrorKind::Excluded(_) => {
                format!("the pattern asks for the byte {shown}, which is excluded here")
            }
            _ => format!("the literal {shown} ends a line, and a match lies within one line"),
        };
        Error { kind, pattern: self.given.to_owned(), place: literal(&self.ast, byte), message }
    }
}

/// Whether a literal of `hir` holds `byte`.
fn asks_for(hir: &Hir, byte: u8) -> bool {
    match hir.kind() {
        HirKind::Literal(literal) => literal.0.contains(&byte),
        HirKind::Repetition(repetition) => asks_for(&repetition.sub, byte),
        HirKind::Capture(capture) => asks_for(&capture.sub, byte),
        HirKind::Concat(subs) | HirKind::Alternation(subs) => subs.iter().any(|sub| asks_for(sub, byte)),
        HirKind::Empty | HirKind::Class(_) | HirKind::Look(_) => false,
    }
}

/// `hir` such that every match lies within a line; the byte of a literal that cannot.
fn within_line(hir: Hir, options: &Options) -> Result<Hir, u8> {
    let ends = line_ends(options);
    rebuilt(hir, &mut |leaf| match leaf {
        HirKind::Literal(literal) => match literal.0.iter().find(|byte| ends.contains(byte)) {
            Some(&byte) => Err(byte),
            None => Ok(Hir::literal(literal.0)),
        },
        HirKind::Class(class) => Ok(Hir::class(without(class, ends))),
        HirKind::Look(Look::Start) => Ok(Hir::look(line_start(options))),
        HirKind::Look(Look::End) => Ok(Hir::look(line_end(options))),
        HirKind::Look(look) => Ok(Hir::look(look)),
        _ => Ok(Hir::empty()),
    })
}

fn without(class: Class, bytes: &[u8]) -> Class {
    match class {
        Class::Unicode(mut class) => {
            let ranges = bytes.iter().map(|&b| hir::ClassUnicodeRange::new(char::from(b), char::from(b)));
            class.difference(&hir::ClassUnicode::new(ranges));
            Class::Unicode(class)
        }
        Class::Bytes(mut class) => {
            let ranges = bytes.iter().map(|&b| hir::ClassBytesRange::new(b, b));
            class.difference(&hir::ClassBytes::new(ranges));
            Class::Bytes(class)
        }
    }
}

/// A tree with its leaves replaced; groups and repetitions stay.
fn rebuilt<E>(hir: Hir, leaf: &mut dyn FnMut(HirKind) -> Result<Hir, E>) -> Result<Hir, E> {
    match hir.into_kind() {
        HirKind::Repetition(mut repetition) => {
            *repetition.sub = rebuilt(*repetition.sub, leaf)?;
            Ok(Hir::repetition(repetition))
        }
        HirKind::Capture(mut capture) => {
            *capture.sub = rebuilt(*capture.sub, leaf)?;
            Ok(Hir::capture(capture))
        }
        HirKind::Concat(subs) => {
            let subs: Result<Vec<Hir>, E> = subs.into_iter().map(|sub| rebuilt(sub, leaf)).collect();
            Ok(Hir::concat(subs?))
        }
        HirKind::Alternation(subs) => {
            let subs: Result<Vec<Hir>, E> = subs.into_iter().map(|sub| rebuilt(sub, leaf)).collect();
            Ok(Hir::alternation(subs?))
        }
        other => leaf(other),
    }
}

/// `hir` with its groups numbered behind `groups` earlier ones.
fn renumbered(hir: Hir, groups: u32) -> Hir {
    if groups == 0 || hir.properties().explicit_captures_len() == 0 {
        return hir;
    }
    let all = |subs: Vec<Hir>| subs.into_iter().map(|sub| renumbered(sub, groups)).collect();
    match hir.into_kind() {
        HirKind::Capture(mut capture) => {
            capture.index += groups;
            *capture.sub = renumbered(*capture.sub, groups);
            Hir::capture(capture)
        }
        HirKind::Repetition(mut repetition) => {
            *repetition.sub = renumbered(*repetition.sub, groups);
            Hir::repetition(repetition)
        }
        HirKind::Concat(subs) => Hir::concat(all(subs)),
        HirKind::Alternation(subs) => Hir::alternation(all(subs)),
        HirKind::Literal(literal) => Hir::literal(literal.0),
        HirKind::Class(class) => Hir::class(class),
        HirKind::Look(look) => Hir::look(look),
        HirKind::Empty => Hir::empty(),
    }
}

fn line_start(options: &Options) -> Look {
    if options.terminator == Terminator::CrLf {
        Look::StartCRLF
    } else {
        Look::StartLF
    }
}

fn line_end(options: &Options) -> Look {
    if options.terminator == Terminator::CrLf {
        Look::EndCRLF
    } else {
        Look::EndLF
    }
}

/// `hir` between the ends of a word or of a line.
fn bounded(hir: Hir, options: &Options) -> Hir {
    let (start, end) = match (options.boundary, options.unicode) {
        (Boundary::None, _) => return hir,
        (Boundary::Word, true) => (Look::WordStartHalfUnicode, Look::WordEndHalfUnicode),
        (Boundary::Word, false) => (Look::WordStartHalfAscii, Look::WordEndHalfAscii),
        (Boundary::Line, _) => (line_start(options), line_end(options)),
    };
    Hir::concat(vec![Hir::look(start), hir, Hir::look(end)])
}

/// The properties of a pattern's literals on which smart case depends.
#[derive(Clone, Copy, Debug, Default)]
struct Letters {
    any: bool,
    upper: bool,
}

impl Letters {
    fn of(ast: &Ast) -> Letters {
        let mut letters = Letters::default();
        each_literal(ast, &mut |literal| {
            letters.any = true;
            letters.upper |= literal.c.is_uppercase();
        });
        letters
    }
}

/// The place of a literal for `byte`.
fn literal(ast: &Ast, byte: u8) -> Option<Range<usize>> {
    let mut found = None;
    each_literal(ast, &mut |literal| {
        if literal.c == char::from(byte) && found.is_none() {
            found = Some(literal.span.start.offset..literal.span.end.offset);
        }
    });
    found
}

fn each_literal(ast: &Ast, tell: &mut dyn FnMut(&ast::Literal)) {
    match ast {
        Ast::Literal(literal) => tell(literal),
        Ast::ClassBracketed(class) => each_set_literal(&class.kind, tell),
        Ast::Repetition(repetition) => each_literal(&repetition.ast, tell),
        Ast::Group(group) => each_literal(&group.ast, tell),
        Ast::Alternation(alternation) => alternation.asts.iter().for_each(|ast| each_literal(ast, tell)),
        Ast::Concat(concat) => concat.asts.iter().for_each(|ast| each_literal(ast, tell)),
        _ => (),
    }
}

fn each_set_literal(set: &ast::ClassSet, tell: &mut dyn FnMut(&ast::Literal)) {
    match set {
        ast::ClassSet::Item(item) => each_item_literal(item, tell),
        ast::ClassSet::BinaryOp(op) => {
            each_set_literal(&op.lhs, tell);
            each_set_literal(&op.rhs, tell);
        }
    }
}

fn each_item_literal(item: &ast::ClassSetItem, tell: &mut dyn FnMut(&ast::Literal)) {
    match item {
        ast::ClassSetItem::Literal(literal) => tell(literal),
        ast::ClassSetItem::Range(range) => {
            tell(&range.start);
            tell(&range.end);
        }
        ast::ClassSetItem::Bracketed(class) => each_set_literal(&class.kind, tell),
        ast::ClassSetItem::Union(union) => union.items.iter().for_each(|item| each_item_literal(item, tell)),
        _ => (),
    }
}
