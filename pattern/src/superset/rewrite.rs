//! From a Perl-compatible pattern to the text of one that matches wherever it does.
//!
//! One pass over the characters. Groups lose their names and numbers; what they were rewritten to
//! is kept for references to them. Anything that is not plainly understood ends the pass with none.
//! Source of the syntax: the manual page pcre2pattern.

use super::class::Set;
use std::iter::Peekable;
use std::str::Chars;

/// A longer result would not be worth its program.
const MOST_BYTES: usize = 4096;
/// Nested groups beyond this are refused.
const MOST_DEPTH: usize = 60;

/// Whether a pattern may change flags in its middle, case among them.
pub(super) fn sets_flags(pattern: &str) -> bool {
    let behind = |at: usize| pattern[at + 2..].chars().next();
    pattern
        .match_indices("(?")
        .any(|(at, _)| behind(at).is_some_and(|c| c.is_ascii_lowercase() || "-^".contains(c)))
}

/// The superset's text; `folds` says that case does not matter, be it in a part only.
pub(super) fn rewritten(pattern: &str, folds: bool) -> Option<String> {
    let mut pass =
        Pass { rest: pattern.chars().peekable(), folds, groups: Vec::new(), names: Vec::new(), depth: 0 };
    let text = pass.alternatives()?;
    (pass.rest.peek().is_none() && text.len() <= MOST_BYTES).then_some(text)
}

struct Pass<'p> {
    rest: Peekable<Chars<'p>>,
    folds: bool,
    /// What each group was rewritten to, none while it is open.
    groups: Vec<Option<String>>,
    names: Vec<(String, usize)>,
    depth: usize,
}

impl Pass<'_> {
    fn take(&mut self, wanted: char) -> bool {
        self.rest.next_if_eq(&wanted).is_some()
    }

    /// Everything up to `end`, which is taken too.
    fn until(&mut self, end: char) -> Option<String> {
        let mut text = String::new();
        loop {
            match self.rest.next()? {
                c if c == end => return Some(text),
                c => text.push(c),
            }
        }
    }

    /// Up to the end or a closing parenthesis, which stays.
    fn alternatives(&mut self) -> Option<String> {
        self.depth += 1;
        let mut out = String::new();
        while let Some(&next) = self.rest.peek() {
            if next == ')' || self.depth > MOST_DEPTH || out.len() > MOST_BYTES {
                break;
            }
            self.rest.next();
            if next == '|' {
                out.push('|');
                continue;
            }
            let item = self.item(next)?;
            out += &item;
            out += &self.quantifier()?;
        }
        self.depth -= 1;
        (self.depth < MOST_DEPTH).then_some(out)
    }

    fn item(&mut self, first: char) -> Option<String> {
        match first {
            '.' => Some(Set::ALL.text()),
            '^' | '$' => Some(format!("(?:{first})")),
            '(' => self.group(),
            '[' => Some(self.class()?.text()),
            '\\' => self.escape(),
            '*' | '+' | '?' => None,
            c => Some(self.literal(c)),
        }
    }

    fn literal(&self, c: char) -> String {
        match c.is_ascii() {
            true => regex_syntax::escape(c.encode_utf8(&mut [0; 4])),
            // Two engines may fold differently, be it to an ASCII letter.
            false if self.folds => Set::ALL.text(),
            false => c.to_string(),
        }
    }

    /// How often, without greed: the superset asks only whether.
    fn quantifier(&mut self) -> Option<String> {
        let mut text = String::new();
        match self.rest.peek() {
            Some(&c @ ('*' | '+' | '?')) => {
                self.rest.next();
                text.push(c);
            }
            Some('{') => {
                let mut ahead = self.rest.clone();
                ahead.next();
                let inner: String = ahead.by_ref().take_while(|&c| c != '}').collect();
                let is_count =
                    |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
                let (least, most) = inner.split_once(',').unwrap_or((&inner, ""));
                let is_plain = is_count(least) && (most.is_empty() || is_count(most));
                // Versions differ about spaces and a missing least count.
                if !is_plain && inner.chars().all(|c| c.is_ascii_digit() || c == ',' || c == ' ') {
                    return None;
                }
                if !is_plain {
                    return Some(text);
                }
                self.until('}')?;
                text = format!("{{{inner}}}");
            }
            _ => return Some(text),
        }
        let _ = self.take('+') || self.take('?');
        // A second one repeats the repetition, which means more.
        match self.rest.peek() {
            Some('*' | '+' | '?' | '{') => None,
            _ => Some(text),
        }
    }

    // --- groups

    fn group(&mut self) -> Option<String> {
        // Behind `(*` stands a verb, which nothing here understands.
        if self.rest.peek() == Some(&'*') {
            return None;
        }
        if !self.take('?') {
            return self.captured(None);
        }
        match self.rest.next()? {
            ':' | '>' => self.inner(),
            // Look-around matches no text of its own: left out, it allows more.
            '=' | '!' => self.inner().map(|_| String::from("(?:)")),
            '#' => self.until(')').map(|_| String::from("(?:)")),
            '<' if self.take('=') || self.take('!') => self.inner().map(|_| String::from("(?:)")),
            '<' => {
                let name = self.until('>')?;
                self.captured(Some(name))
            }
            '\'' => {
                let name = self.until('\'')?;
                self.captured(Some(name))
            }
            'P' if self.take('<') => {
                let name = self.until('>')?;
                self.captured(Some(name))
            }
            'P' if self.take('=') => {
                let name = self.until(')')?;
                self.named(&name)
            }
            c @ ('i' | 'm' | 's' | '-') => self.flags(c),
            _ => None,
        }
    }

    /// Flags for the rest of a group or for one of their own: case is folded everywhere where it
    /// may be anywhere, the others say nothing about single lines.
    fn flags(&mut self, first: char) -> Option<String> {
        let mut flag = first;
        loop {
            match flag {
                'i' | 'm' | 's' | '-' => flag = self.rest.next()?,
                ')' => return Some(String::from("(?:)")),
                ':' => return self.inner(),
                _ => return None,
            }
        }
    }

    fn inner(&mut self) -> Option<String> {
        let text = self.alternatives()?;
        self.take(')').then(|| format!("(?:{text})"))
    }

    fn captured(&mut self, name: Option<String>) -> Option<String> {
        let number = self.groups.len();
        self.groups.push(None);
        self.names.extend(name.map(|name| (name, number)));
        let text = self.inner()?;
        self.groups[number] = Some(text.clone());
        Some(text)
    }

    // --- references

    /// What the group with this number, from 1 on, was rewritten to; anything at all where it is
    /// not known yet.
    fn reference(&self, number: usize) -> Option<String> {
        let group = self.groups.get(number.checked_sub(1)?);
        Some(match group {
            // What a group required around itself holds where it stood, not where it is repeated.
            Some(Some(text)) => text.replace("(?:^)", "(?:)").replace("(?:$)", "(?:)"),
            _ => format!("(?:{}*)", Set::ALL.text()),
        })
    }

    fn named(&self, name: &str) -> Option<String> {
        let mut known = self.names.iter().filter(|(known, _)| known == name);
        match (known.next(), known.next()) {
            (Some(&(_, number)), None) => self.reference(number + 1),
            _ => Some(format!("(?:{}*)", Set::ALL.text())),
        }
    }

    /// `\g`: a number, one relative to the groups so far, or a name.
    fn general_reference(&mut self) -> Option<String> {
        let digits = |c: &char| c.is_ascii_digit();
        let text = match self.rest.peek()? {
            '{' => {
                self.rest.next();
                self.until('}')?
            }
            c if c.is_ascii_digit() => std::iter::from_fn(|| self.rest.next_if(digits)).collect(),
            _ => return None,
        };
        match text.strip_prefix('-') {
            Some(back) => self.reference((self.groups.len() + 1).checked_sub(back.parse().ok()?)?),
            None if text.starts_with(|c: char| c.is_ascii_digit()) => self.reference(text.parse().ok()?),
            None if text.starts_with('+') => None,
            None => self.named(&text),
        }
    }

    // --- escapes and classes

    fn escape(&mut self) -> Option<String> {
        let c = self.rest.next()?;
        if let Some(set) = Set::escaped(c) {
            return Some(set.text());
        }
        match c {
            'b' | 'B' | 'K' | 'E' => Some(String::from("(?:)")),
            'A' => Some(String::from("(?:^)")),
            'z' | 'Z' => Some(String::from("(?:$)")),
            'N' if self.rest.peek() != Some(&'{') => Some(Set::ALL.text()),
            'p' | 'P' => {
                self.property()?;
                Some(Set::ALL.text())
            }
            'X' => Some(format!("(?:{}+)", Set::ALL.text())),
            'Q' => self.quoted(),
            'g' => self.general_reference(),
            'k' => {
                let end = match self.rest.next()? {
                    '{' => '}',
                    '<' => '>',
                    '\'' => '\'',
                    _ => return None,
                };
                let name = self.until(end)?;
                self.named(&name)
            }
            // Two digits may be a character's number.
            '1'..='9' if !self.rest.peek().is_some_and(char::is_ascii_digit) => {
                self.reference(c.to_digit(10)? as usize)
            }
            c => {
                let c = self.escaped_character(c)?;
                Some(self.literal(c))
            }
        }
    }

    /// The name behind `\p`.
    fn property(&mut self) -> Option<()> {
        match self.rest.next()? {
            '{' => self.until('}').map(|_| ()),
            _ => Some(()),
        }
    }

    fn quoted(&mut self) -> Option<String> {
        let mut text = String::new();
        loop {
            match self.rest.next() {
                None => break,
                Some('\\') if self.take('E') => break,
                Some(c) => text += &self.literal(c),
            }
        }
        // What follows repeats the last character only.
        match self.rest.peek() {
            Some('*' | '+' | '?' | '{') => None,
            _ => Some(format!("(?:{text})")),
        }
    }

    /// The character that a backslash and `c` stand for.
    fn escaped_character(&mut self, c: char) -> Option<char> {
        match c {
            't' => Some('\t'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            'f' => Some('\x0c'),
            'e' => Some('\x1b'),
            'a' => Some('\x07'),
            'x' if self.take('{') => char::from_u32(u32::from_str_radix(self.until('}')?.trim(), 16).ok()?),
            'x' => {
                let hex = |c: &char| c.is_ascii_hexdigit();
                let (first, second) = (self.rest.next_if(hex)?, self.rest.next_if(hex)?);
                char::from_u32(u32::from_str_radix(&format!("{first}{second}"), 16).ok()?)
            }
            c if c.is_ascii_punctuation() || c == ' ' => Some(c),
            _ => None,
        }
    }

    fn class(&mut self) -> Option<Set> {
        let is_complement = self.take('^');
        let mut set = Set::NONE;
        let mut is_first = true;
        loop {
            let c = self.rest.next()?;
            if c == ']' && !is_first {
                break;
            }
            is_first = false;
            set = set.or(self.class_item(c)?);
        }
        Some(if is_complement { set.complement() } else { set })
    }

    fn class_item(&mut self, c: char) -> Option<Set> {
        let first = match c {
            '[' if matches!(self.rest.peek(), Some(':' | '.' | '=')) => return self.named_class(),
            '\\' => {
                let c = self.rest.next()?;
                match c {
                    'b' => '\x08',
                    'p' | 'P' => {
                        self.property()?;
                        // A complement around it must not lose anything, and neither may the set:
                        // no single set does both.
                        return None;
                    }
                    c => match Set::escaped(c) {
                        Some(set) => return Some(set),
                        None => self.escaped_character(c)?,
                    },
                }
            }
            c => c,
        };
        let last = self.end_of_range()?.unwrap_or(first);
        // Two engines may fold differently, be it to an ASCII letter.
        if self.folds && !(first.is_ascii() && last.is_ascii()) {
            return None;
        }
        (first <= last).then(|| if first == last { Set::of(first) } else { Set::range(first, last) })
    }

    /// The last character of a range, where a hyphen begins one.
    fn end_of_range(&mut self) -> Option<Option<char>> {
        let mut ahead = self.rest.clone();
        if ahead.next() != Some('-') {
            return Some(None);
        }
        match ahead.next()? {
            ']' => Some(None),
            '[' => None,
            '\\' => {
                self.rest.nth(1);
                let c = self.rest.next()?;
                Some(Some(if c == 'b' { '\x08' } else { self.escaped_character(c)? }))
            }
            c => {
                self.rest.nth(1);
                Some(Some(c))
            }
        }
    }

    fn named_class(&mut self) -> Option<Set> {
        if !self.take(':') {
            return None;
        }
        let is_complement = self.take('^');
        let name = self.until(':')?;
        let set = Set::named(&name)?;
        self.take(']').then(|| if is_complement { set.complement() } else { set })
    }
}
