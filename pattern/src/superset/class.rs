//! Character classes of a superset: exact within ASCII; beyond it a class has all characters or
//! none.

/// A set of characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Set {
    /// Bit `i` is ASCII character `i`.
    pub(super) ascii: u128,
    /// Whether any character beyond ASCII may belong to it.
    pub(super) beyond: bool,
}

impl Set {
    pub(super) const NONE: Set = Set { ascii: 0, beyond: false };
    pub(super) const ALL: Set = Set { ascii: u128::MAX, beyond: true };

    /// The set of one character.
    pub(super) fn of(character: char) -> Set {
        match character.is_ascii() {
            true => Set { ascii: 1 << (character as u32), beyond: false },
            false => Set { ascii: 0, beyond: true },
        }
    }

    /// The ASCII characters with a property; beyond ASCII, every character may have it.
    pub(super) fn with(has: impl Fn(u8) -> bool) -> Set {
        let ascii = (0..128).filter(|&byte| has(byte)).fold(0, |set, byte| set | 1u128 << byte);
        Set { ascii, beyond: true }
    }

    /// The characters from `first` to `last`, both included.
    pub(super) fn range(first: char, last: char) -> Set {
        let (from, to) = (u32::from(first), u32::from(last));
        Set { beyond: to > 127, ..Set::with(|byte| (from..=to).contains(&u32::from(byte))) }
    }

    pub(super) fn or(self, other: Set) -> Set {
        Set { ascii: self.ascii | other.ascii, beyond: self.beyond | other.beyond }
    }

    /// The characters that may be outside of the set. Beyond ASCII every character may be.
    pub(super) fn complement(self) -> Set {
        Set { ascii: !self.ascii, beyond: true }
    }

    /// What `\d`, `\w` and their like stand for, in lower or upper case; `None` for other letters.
    pub(super) fn escaped(letter: char) -> Option<Set> {
        let set = match letter.to_ascii_lowercase() {
            'd' => Set::with(|byte| byte.is_ascii_digit()),
            'w' => Set::with(|byte| byte.is_ascii_alphanumeric() || byte == b'_'),
            's' => Set::with(|byte| matches!(byte, b'\t'..=b'\r' | b' ')),
            'h' => Set::with(|byte| matches!(byte, b'\t' | b' ')),
            'v' => Set::with(|byte| matches!(byte, b'\n'..=b'\r')),
            _ => return None,
        };
        Some(if letter.is_ascii_uppercase() { set.complement() } else { set })
    }

    /// The set that `[:name:]` stands for; `None` for an unknown name.
    pub(super) fn named(name: &str) -> Option<Set> {
        Some(match name {
            "alpha" => Set::with(|byte| byte.is_ascii_alphabetic()),
            "digit" => Set::with(|byte| byte.is_ascii_digit()),
            "alnum" => Set::with(|byte| byte.is_ascii_alphanumeric()),
            "upper" => Set::with(|byte| byte.is_ascii_uppercase()),
            "lower" => Set::with(|byte| byte.is_ascii_lowercase()),
            "space" => Set::with(|byte| matches!(byte, b'\t'..=b'\r' | b' ')),
            "blank" => Set::with(|byte| matches!(byte, b'\t' | b' ')),
            "punct" => Set::with(|byte| byte.is_ascii_punctuation()),
            "print" => Set::with(|byte| matches!(byte, b' '..=b'~')),
            "graph" => Set::with(|byte| byte.is_ascii_graphic()),
            "cntrl" => Set::with(|byte| byte.is_ascii_control()),
            "xdigit" => Set::with(|byte| byte.is_ascii_hexdigit()),
            "word" => Set::with(|byte| byte.is_ascii_alphanumeric() || byte == b'_'),
            "ascii" => Set::with(|_| true),
            _ => return None,
        })
    }

    /// The class in the syntax of the `regex` crate.
    pub(super) fn text(self) -> String {
        let mut text = String::from("[");
        let mut at = 0u32;
        while at < 128 {
            if self.ascii >> at & 1 == 0 {
                at += 1;
                continue;
            }
            let end = (at..128).take_while(|&byte| self.ascii >> byte & 1 == 1).last().unwrap_or(at);
            text += &format!("\\x{{{at:x}}}-\\x{{{end:x}}}");
            at = end + 1;
        }
        if self.beyond {
            text += r"\x{80}-\x{10ffff}";
        }
        // The syntax has no empty class, so this is one that contains nothing.
        if self == Set::NONE {
            text += "a&&b";
        }
        text + "]"
    }
}
