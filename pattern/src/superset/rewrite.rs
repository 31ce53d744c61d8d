//! Rewrites a Perl-compatible pattern to the text of a pattern that matches wherever it does.
//!
//! One pass over the characters. Groups lose their names and numbers; the rewritten text of each is
//! kept for references to it. The pass ends with `None` at anything that it does not understand.
//! Source of the syntax: the manual page pcre2pattern.

use super::class::Set;
use std::iter::Peekable;
use std::str::Chars;

/// A pattern whose superset is longer has none: its program would cost more than it saves.
const MOST_BYTES: usize = 4096;
/// Groups that are nested more deeply are refused.
const MOST_DEPTH: usize = 60;

/// Whether a pattern may change flags, such as that for case, in its middle.
pub(super) fn sets_flags(pattern: &str) -> bool {
    let behind = |at: usize| pattern[at + 2..].chars().next();
    pattern.match_indices("(?").any(|(at, _)| {
        behind(at).is_some_and(|character| character.is_ascii_lowercase() || "-^".contains(character))
    })
}

/// The superset's text. `folds` says that case does not matter, at least in a part of the pattern.
pub(super) fn rewritten(pattern: &str, folds: bool) -> Option<String> {
    let mut pass =
        Pass { rest: pattern.chars().peekable(), folds, groups: Vec::new(), names: Vec::new(), depth: 0 };
    let text = pass.alternatives()?;
    (pass.rest.peek().is_none() && text.len() <= MOST_BYTES).then_some(text)
}

struct Pass<'p> {
    rest: Peekable<Chars<'p>>,
    folds: bool,
    /// The rewritten text of each group; `None` while the group is open.
    groups: Vec<Option<String>>,
    names: Vec<(String, usize)>,
    depth: usize,
}

impl Pass<'_> {
    fn take(&mut self, wanted: char) -> bool {
        self.rest.next_if_eq(&wanted).is_some()
    }

    /// Takes everything up to `end`, and `end` itself, which the result lacks.
    fn until(&mut self, end: char) -> Option<String> {
        let mut text = String::new();
        loop {
            match self.rest.next()? {
                character if character == end => return Some(text),
                character => text.push(character),
            }
        }
    }

    /// Rewrites alternatives up to the end or a closing parenthesis, which it leaves.
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
            character => Some(self.literal(character)),
        }
    }

    fn literal(&self, character: char) -> String {
        match character.is_ascii() {
            true => regex_syntax::escape(character.encode_utf8(&mut [0; 4])),
            // Two engines may fold a character beyond ASCII differently, even to an ASCII letter.
            false if self.folds => Set::ALL.text(),
            false => character.to_string(),
        }
    }

    /// A quantifier, without greed: the superset only decides whether there is a match.
    fn quantifier(&mut self) -> Option<String> {
        let mut text = String::new();
        match self.rest.peek() {
            Some(&character @ ('*' | '+' | '?')) => {
                self.rest.next();
                text.push(character);
            }
            Some('{') => {
                let mut ahead = self.rest.clone();
                ahead.next();
                let inner: String = ahead.by_ref().take_while(|&character| character != '}').collect();
                let is_count =
                    |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
                let (least, most) = inner.split_once(',').unwrap_or((&inner, ""));
                let is_plain = is_count(least) && (most.is_empty() || is_count(most));
                // Versions of PCRE differ about spaces and about a missing least count.
                if !is_plain
                    && inner
                        .chars()
                        .all(|character| character.is_ascii_digit() || character == ',' || character == ' ')
                {
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
        // A second quantifier repeats the repetition, so it can match more.
        match self.rest.peek() {
            Some('*' | '+' | '?' | '{') => None,
            _ => Some(text),
        }
    }

    // --- groups

    fn group(&mut self) -> Option<String> {
        // `(*` begins a verb, and no verb is understood.
        if self.rest.peek() == Some(&'*') {
            return None;
        }
        if !self.take('?') {
            return self.captured(None);
        }
        match self.rest.next()? {
            ':' | '>' => self.inner(),
            // Look-around matches no text of its own; without it, the pattern matches more.
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
            character @ ('i' | 'm' | 's' | '-') => self.flags(character),
            _ => None,
        }
    }

    /// Reads flags for the rest of a group, or for a group of their own. Case is folded everywhere
    /// if it is folded anywhere, and the other flags do not matter within single lines.
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

    /// The rewritten text of group `number`, counted from 1; a pattern for any text if the group is
    /// not closed yet.
    fn reference(&self, number: usize) -> Option<String> {
        let group = self.groups.get(number.checked_sub(1)?);
        Some(match group {
            // A group's anchors held where the group stood. They need not hold where it is
            // repeated.
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

    /// Reads what follows `\g`: a number, a number relative to the groups so far, or a name.
    fn general_reference(&mut self) -> Option<String> {
        let digits = |character: &char| character.is_ascii_digit();
        let text = match self.rest.peek()? {
            '{' => {
                self.rest.next();
                self.until('}')?
            }
            character if character.is_ascii_digit() => {
                std::iter::from_fn(|| self.rest.next_if(digits)).collect()
            }
            _ => return None,
        };
        match text.strip_prefix('-') {
            Some(back) => self.reference((self.groups.len() + 1).checked_sub(back.parse().ok()?)?),
            None if text.starts_with(|character: char| character.is_ascii_digit()) => {
                self.reference(text.parse().ok()?)
            }
            None if text.starts_with('+') => None,
            None => self.named(&text),
        }
    }

    // --- escapes and classes

    fn escape(&mut self) -> Option<String> {
        let character = self.rest.next()?;
        if let Some(set) = Set::escaped(character) {
            return Some(set.text());
        }
        match character {
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
            // Two digits may be the number of a character.
            '1'..='9' if !self.rest.peek().is_some_and(char::is_ascii_digit) => {
                self.reference(character.to_digit(10)? as usize)
            }
            character => {
                let character = self.escaped_character(character)?;
                Some(self.literal(character))
            }
        }
    }

    /// Takes the name of the property that follows `\p`.
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
                Some(character) => text += &self.literal(character),
            }
        }
        // A quantifier here repeats only the last character of the quoted text.
        match self.rest.peek() {
            Some('*' | '+' | '?' | '{') => None,
            _ => Some(format!("(?:{text})")),
        }
    }

    /// The character that a backslash and `character` stand for.
    fn escaped_character(&mut self, character: char) -> Option<char> {
        match character {
            't' => Some('\t'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            'f' => Some('\x0c'),
            'e' => Some('\x1b'),
            'a' => Some('\x07'),
            'x' if self.take('{') => char::from_u32(u32::from_str_radix(self.until('}')?.trim(), 16).ok()?),
            'x' => {
                let hex = |character: &char| character.is_ascii_hexdigit();
                let (first, second) = (self.rest.next_if(hex)?, self.rest.next_if(hex)?);
                char::from_u32(u32::from_str_radix(&format!("{first}{second}"), 16).ok()?)
            }
            character if character.is_ascii_punctuation() || character == ' ' => Some(character),
            _ => None,
        }
    }

    fn class(&mut self) -> Option<Set> {
        let is_complement = self.take('^');
        let mut set = Set::NONE;
        let mut is_first = true;
        loop {
            let character = self.rest.next()?;
            if character == ']' && !is_first {
                break;
            }
            is_first = false;
            set = set.or(self.class_item(character)?);
        }
        Some(if is_complement { set.complement() } else { set })
    }

    fn class_item(&mut self, character: char) -> Option<Set> {
        let first = match character {
            '[' if matches!(self.rest.peek(), Some(':' | '.' | '=')) => return self.named_class(),
            '\\' => {
                let character = self.rest.next()?;
                match character {
                    'b' => '\x08',
                    'p' | 'P' => {
                        self.property()?;
                        // The complement of the class must not lose characters, and neither must
                        // the class itself: no single set ensures both.
                        return None;
                    }
                    character => match Set::escaped(character) {
                        Some(set) => return Some(set),
                        None => self.escaped_character(character)?,
                    },
                }
            }
            character => character,
        };
        let last = self.end_of_range()?.unwrap_or(first);
        // Two engines may fold a character beyond ASCII differently, even to an ASCII letter.
        if self.folds && !(first.is_ascii() && last.is_ascii()) {
            return None;
        }
        (first <= last).then(|| if first == last { Set::of(first) } else { Set::range(first, last) })
    }

    /// The last character of a range, if a hyphen begins one here.
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
                let character = self.rest.next()?;
                Some(Some(if character == 'b' { '\x08' } else { self.escaped_character(character)? }))
            }
            character => {
                self.rest.nth(1);
                Some(Some(character))
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
