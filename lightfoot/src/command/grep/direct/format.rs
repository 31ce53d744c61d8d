//! How a result is written: path, number and offset in front of a line.

use super::super::settings::Settings;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The fields of a line, and what separates them.
#[derive(Clone, Debug)]
pub(super) struct Format {
    with_path: bool,
    pub(super) heading: bool,
    pub(super) line_number: bool,
    pub(super) byte_offset: bool,
    separator: Vec<u8>,
    path_terminator: Option<u8>,
}

impl Format {
    pub(super) fn new(settings: &Settings) -> Format {
        Format {
            with_path: settings.with_filename,
            heading: settings.heading,
            line_number: settings.line_number,
            byte_offset: settings.said.byte_offset,
            separator: settings.field_match_separator.clone(),
            path_terminator: settings.path_terminator,
        }
    }

    /// The bytes of a path.
    pub(super) fn path(&self, path: &Path) -> Vec<u8> {
        path.as_os_str().as_bytes().to_vec()
    }

    /// What stands above a file's lines.
    pub(super) fn above(&self, path: &[u8]) -> Vec<u8> {
        if self.heading && self.with_path {
            self.path_line(path)
        } else {
            Vec::new()
        }
    }

    /// What every line of a file begins with.
    pub(super) fn prefix(&self, path: &[u8]) -> Vec<u8> {
        if self.heading || !self.with_path {
            return Vec::new();
        }
        self.path_field(path, &self.separator)
    }

    /// A path on a line of its own.
    pub(super) fn path_line(&self, path: &[u8]) -> Vec<u8> {
        [path, &[self.path_terminator.unwrap_or(b'\n')]].concat()
    }

    /// A number, behind the path where paths are printed.
    pub(super) fn count(&self, path: &[u8], count: u64) -> Vec<u8> {
        let mut line = if self.with_path { self.path_field(path, b":") } else { Vec::new() };
        decimal(&mut line, count);
        line.push(b'\n');
        line
    }

    /// Said in place of a line with a NUL byte at offset `at`.
    pub(super) fn binary(&self, path: &[u8], at: usize) -> Vec<u8> {
        let path = if self.with_path { [path, b": "].concat() } else { Vec::new() };
        let message = format!("binary file matches (found \"\\0\" byte around offset {at})\n");
        [path, message.into_bytes()].concat()
    }

    fn path_field(&self, path: &[u8], separator: &[u8]) -> Vec<u8> {
        match self.path_terminator {
            Some(terminator) => [path, &[terminator]].concat(),
            None => [path, separator].concat(),
        }
    }

    /// The fields between path and text.
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

/// Two digits of each number below 100.
static PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut n = 0;
    while n < 100 {
        pairs[n] = [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
        n += 1;
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
        let powers = (0..20).flat_map(|e| {
            let power = 10u64.pow(e);
            [power - 1, power, power + 1]
        });
        for number in powers.chain(0..2000).chain([u64::MAX]) {
            let mut out = Vec::new();
            decimal(&mut out, number);
            assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        }
    }
}
