//! Formats results: path, number and offset in front of a line.

use super::around::Limits;
use super::paint::Paint;
use crate::settings::Settings;

/// The fields of a line and their separators.
#[derive(Clone, Debug)]
pub(super) struct Format {
    with_path: bool,
    pub(super) heading: bool,
    pub(super) line_number: bool,
    pub(super) byte_offset: bool,
    pub(super) column: bool,
    pub(super) paint: Paint,
    /// What is printed in place of matches.
    pub(super) replacement: Option<Vec<u8>>,
    /// Lines around matches, if there are any.
    pub(super) around: Option<Limits>,
    pub(super) context_separator: Option<Vec<u8>>,
    pub(super) context_field_separator: Vec<u8>,
    separator: Vec<u8>,
    path_terminator: Option<u8>,
}

impl Format {
    pub(super) fn new(settings: &Settings) -> Format {
        Format {
            with_path: settings.with_filename,
            heading: settings.heading,
            line_number: settings.line_number,
            byte_offset: settings.arguments.byte_offset,
            column: settings.column,
            paint: Paint::new(settings),
            replacement: settings.arguments.replace.clone(),
            around: limits(settings),
            context_separator: settings.context_separator.clone(),
            context_field_separator: settings.field_context_separator.clone(),
            separator: settings.field_match_separator.clone(),
            path_terminator: settings.path_terminator,
        }
    }

    /// The separator behind a number.
    pub(super) fn separator(&self) -> &[u8] {
        &self.separator
    }

    /// The text above a file's lines.
    pub(super) fn above(&self, path: &[u8]) -> Vec<u8> {
        if self.heading && self.with_path {
            self.path_line(path)
        } else {
            Vec::new()
        }
    }

    /// The beginning of every line of a file.
    pub(super) fn prefix(&self, path: &[u8]) -> Vec<u8> {
        if self.heading || !self.with_path {
            return Vec::new();
        }
        self.path_field(path, &self.separator)
    }

    /// The beginning of every line around the matches of a file.
    pub(super) fn prefix_around(&self, path: &[u8]) -> Vec<u8> {
        if self.heading || !self.with_path {
            return Vec::new();
        }
        self.path_field(path, &self.context_field_separator)
    }

    /// A path on a line of its own.
    pub(super) fn path_line(&self, path: &[u8]) -> Vec<u8> {
        self.painted(path, &[self.path_terminator.unwrap_or(b'\n')])
    }

    /// A path in its colour, and what follows it.
    fn painted(&self, path: &[u8], behind: &[u8]) -> Vec<u8> {
        [&self.paint.path, path, &self.paint.reset, behind].concat()
    }

    /// A count, behind the path if paths are printed.
    pub(super) fn count(&self, path: &[u8], count: u64) -> Vec<u8> {
        let mut line = if self.with_path { self.path_field(path, b":") } else { Vec::new() };
        decimal(&mut line, count);
        line.push(b'\n');
        line
    }

    /// The text that replaces a line with a NUL byte at offset `at`.
    pub(super) fn binary(&self, path: &[u8], at: u64) -> Vec<u8> {
        self.said_of(path, &format!("binary file matches (found \"\\0\" byte around offset {at})\n"))
    }

    /// The text below the lines of a file whose search ended at a NUL byte at offset `at`.
    pub(super) fn stopped(&self, path: &[u8], at: u64) -> Vec<u8> {
        let what = "WARNING: stopped searching binary file after match";
        self.said_of(path, &format!("{what} (found \"\\0\" byte around offset {at})\n"))
    }

    fn said_of(&self, path: &[u8], sentence: &str) -> Vec<u8> {
        let path = if self.with_path { self.painted(path, b": ") } else { Vec::new() };
        [path.as_slice(), sentence.as_bytes()].concat()
    }

    fn path_field(&self, path: &[u8], separator: &[u8]) -> Vec<u8> {
        match self.path_terminator {
            Some(terminator) => self.painted(path, &[terminator]),
            None => self.painted(path, separator),
        }
    }

    /// Appends the fields between path and text.
    #[inline]
    pub(super) fn numbers(&self, out: &mut Vec<u8>, line_number: u64, offset: u64) {
        if self.line_number {
            decimal(out, line_number);
            out.extend_from_slice(&self.separator);
        }
        if self.byte_offset {
            decimal(out, offset);
            out.extend_from_slice(&self.separator);
        }
    }
}

/// The numbers of lines around matches, unless both are zero.
fn limits(settings: &Settings) -> Option<Limits> {
    let (before, after) = settings.arguments.around.lines();
    (before + after > 0).then_some(Limits { before, after })
}

/// The most digits of a [`Counter`]'s number, and the most bytes of its separator.
const WORD_BYTES: usize = 8;

/// The first number that a [`Counter`] cannot write.
const COUNTER_END: u64 = 100_000_000;

/// A line number with the separator behind it, kept as text, because mostly one digit changes from
/// one number to the next.
///
/// Text and separator are words, not arrays: a load of an array just after a store of one digit
/// would wait for that store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counter {
    value: u64,
    /// Eight digits, the last one in the highest byte.
    digits: u64,
    /// The number of digits without leading zeros.
    length: usize,
    separator: u64,
    separator_bytes: usize,
}

impl Counter {
    /// A counter from `value` to at most `last`; `None` if a number or the separator is too long.
    pub(super) fn new(value: u64, last: u64, separator: &[u8]) -> Option<Counter> {
        if last >= COUNTER_END || separator.len() > WORD_BYTES {
            return None;
        }
        let mut word = [0; WORD_BYTES];
        word[..separator.len()].copy_from_slice(separator);
        let (separator, separator_bytes) = (u64::from_le_bytes(word), separator.len());
        let mut counter = Counter { value, digits: 0, length: 0, separator, separator_bytes };
        counter.write();
        Some(counter)
    }

    fn write(&mut self) {
        let mut left = self.value;
        let mut digits = [b'0'; WORD_BYTES];
        for pair in digits.rchunks_exact_mut(2) {
            pair.copy_from_slice(&PAIRS[(left % 100) as usize]);
            left /= 100;
        }
        self.digits = u64::from_le_bytes(digits);
        let zeros = (self.digits ^ u64::from_le_bytes([b'0'; WORD_BYTES])).trailing_zeros() as usize / 8;
        self.length = WORD_BYTES - zeros.min(WORD_BYTES - 1);
    }

    /// Sets a value that is not smaller.
    #[inline]
    pub(super) fn set(&mut self, value: u64) {
        let more = value - self.value;
        self.value = value;
        if more < 10 {
            self.add(more);
        } else {
            self.write();
        }
    }

    /// Adds less than ten: changes one digit, and propagates a carry if there is one.
    #[inline]
    fn add(&mut self, more: u64) {
        let mut bit = 56;
        self.digits += more << bit;
        while self.digits >> bit & 0xff > u64::from(b'9') {
            self.digits -= 10 << bit;
            bit -= 8;
            self.digits += 1 << bit;
            self.length = self.length.max(WORD_BYTES - bit / 8);
        }
    }

    /// Writes number and separator at the front of `out`, and any bytes up to [`Counter::BYTES`].
    /// Returns the number of valid bytes.
    #[inline]
    pub(super) fn put(&self, out: &mut [u8; Counter::BYTES]) -> usize {
        let digits = self.digits >> (8 * (WORD_BYTES - self.length));
        out[..WORD_BYTES].copy_from_slice(&digits.to_le_bytes());
        if let Some(out) = out[self.length..].first_chunk_mut() {
            *out = self.separator.to_le_bytes();
        }
        self.length + self.separator_bytes
    }

    /// The number of bytes that [`Counter::put`] may write.
    pub(super) const BYTES: usize = 2 * WORD_BYTES;
}

/// Two digits of each number below 100.
static PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// Appends a number in decimal, two digits at a time.
#[inline]
pub(super) fn decimal(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = 20;
    while number >= 10 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[(number % 100) as usize]);
        number /= 100;
    }
    if number > 0 || at == 20 {
        at -= 1;
        digits[at] = b'0' + number as u8;
    }
    let start = if digits[at] == b'0' && at < 19 { at + 1 } else { at };
    out.extend_from_slice(&digits[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_those_of_the_standard_library() {
        let powers = (0..20).flat_map(|exponent| {
            let power = 10u64.pow(exponent);
            [power - 1, power, power + 1]
        });
        for number in powers.chain(0..2000).chain([u64::MAX]) {
            let mut out = Vec::new();
            decimal(&mut out, number);
            assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        }
    }

    fn shown(counter: &Counter) -> String {
        let mut out = [0; Counter::BYTES];
        let length = counter.put(&mut out);
        String::from_utf8(out[..length].to_vec()).unwrap()
    }

    #[test]
    fn a_counter_writes_what_it_counts() {
        let steps = [(1, 1200), (9, 300), (99, 120), (1000, 40), (1, 1100), (4_567_890, 20), (0, 3)];
        let mut value = 0;
        let mut counter = Counter::new(value, COUNTER_END - 1, b": ").unwrap();
        for (step, times) in steps {
            for _ in 0..times {
                value += step;
                counter.set(value);
                assert_eq!(shown(&counter), format!("{value}: "));
            }
        }
        let mut last = Counter::new(COUNTER_END - 2, COUNTER_END - 1, b"12345678").unwrap();
        last.set(COUNTER_END - 1);
        assert_eq!(shown(&last), "9999999912345678");
        assert!(Counter::new(1, 1, b"123456789").is_none() && Counter::new(1, COUNTER_END, b":").is_none());
    }
}
