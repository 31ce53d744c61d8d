//! What a program prints by requests: `VALGRIND_PRINTF` and `VALGRIND_PRINTF_BACKTRACE`.
//!
//! A request has the address of a format and that of a `va_list` of the System V ABI for amd64. The
//! conversions are those of Valgrind's own `printf`. Each line stands in the log behind `**PID**`;
//! the second form has a backtrace behind its text. Source: the System V ABI, 3.5.7.

use instrument::mark::ProgramMemory;
use std::fmt::Write;
use std::iter::Peekable;
use std::str::Chars;

/// Most bytes to which a value is filled up.
const WIDTH_MAX: usize = 4096;
/// Where the register save area's integers end, and where its vectors end.
const INTEGERS_END: u32 = 48;
const VECTORS_END: u32 = 176;

/// The lines that a process has printed.
#[derive(Debug, Default)]
pub(super) struct Printed {
    /// Complete lines, each with the process's number before it.
    pub(super) lines: Vec<String>,
    /// The line that has not ended.
    open: String,
    /// Dumps that the log tells of: before how many lines they come, the image, and their number
    /// among its cuts.
    dumps: Vec<(usize, u32, usize)>,
}

impl Printed {
    /// Takes text; returns the lines that it completes.
    pub(super) fn take(&mut self, pid: i32, text: &str) -> &[String] {
        let before = self.lines.len();
        self.open += text;
        while let Some((line, rest)) = self.open.split_once('\n') {
            self.lines.push(format!("**{pid}** {line}"));
            self.open = rest.to_owned();
        }
        &self.lines[before..]
    }

    /// Takes the lines of a backtrace, of which the first completes the line that is open.
    pub(super) fn trace(&mut self, pid: i32, frames: &[String]) {
        for frame in frames {
            self.lines.push(match std::mem::take(&mut self.open) {
                open if open.is_empty() => format!("=={pid}== {frame}"),
                open => format!("**{pid}** {open}{frame}"),
            });
        }
    }

    /// Takes lines that tell of a request.
    pub(super) fn tell(&mut self, pid: i32, lines: &[String]) {
        self.lines.extend(lines.iter().map(|line| format!("--{pid}-- {line}")));
    }

    /// Notes that an image was dumped, for the `cut`th time from 0.
    pub(super) fn dump(&mut self, image: u32, cut: usize) {
        self.dumps.push((self.lines.len(), image, cut));
    }

    /// All lines, with those that `lines_of` gives for the dumps of an image at their places.
    pub(super) fn with_dumps(&self, image: u32, lines_of: impl Fn(usize) -> Vec<String>) -> Vec<String> {
        let mut all = Vec::with_capacity(self.lines.len());
        let mut rest = &self.lines[..];
        for &(before, _, cut) in self.dumps.iter().filter(|(_, own, _)| *own == image) {
            let (now, later) = rest.split_at(before - (self.lines.len() - rest.len()));
            all.extend_from_slice(now);
            all.extend(lines_of(cut));
            rest = later;
        }
        all.extend_from_slice(rest);
        all
    }

    /// Completes the last line; returns it, if there is one.
    pub(super) fn finish(&mut self, pid: i32) -> Option<&String> {
        if self.open.is_empty() {
            return None;
        }
        self.take(pid, "\n").last()
    }
}

/// The arguments behind a format.
struct Arguments<'m> {
    memory: &'m dyn ProgramMemory,
    integers: u32,
    vectors: u32,
    overflow: u64,
    saved: u64,
}

impl<'m> Arguments<'m> {
    fn new(list: u64, memory: &'m dyn ProgramMemory) -> Option<Arguments<'m>> {
        let mut bytes = [0; 24];
        if memory.read(list, &mut bytes) < bytes.len() {
            return None;
        }
        let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        Some(Arguments { memory, integers: half(0), vectors: half(4), overflow: word(8), saved: word(16) })
    }

    fn word(&self, address: u64) -> u64 {
        let mut bytes = [0; 8];
        self.memory.read(address, &mut bytes);
        u64::from_le_bytes(bytes)
    }

    fn on_stack(&mut self) -> u64 {
        let word = self.word(self.overflow);
        self.overflow = self.overflow.wrapping_add(8);
        word
    }

    fn integer(&mut self) -> u64 {
        if self.integers >= INTEGERS_END {
            return self.on_stack();
        }
        let word = self.word(self.saved.wrapping_add(self.integers.into()));
        self.integers += 8;
        word
    }

    fn float(&mut self) -> f64 {
        if self.vectors >= VECTORS_END {
            return f64::from_bits(self.on_stack());
        }
        let word = self.word(self.saved.wrapping_add(self.vectors.into()));
        self.vectors += 16;
        f64::from_bits(word)
    }
}

/// What stands between a percent sign and its letter.
#[derive(Clone, Copy, Default)]
struct Form {
    left: bool,
    zeros: bool,
    prefixed: bool,
    width: usize,
    decimals: Option<usize>,
    is_long: bool,
}

/// A number that a format has at its present place, at most [`WIDTH_MAX`].
fn number(format: &mut Peekable<Chars<'_>>) -> usize {
    let mut number = 0usize;
    while let Some(digit) = format.peek().and_then(|letter| letter.to_digit(10)) {
        number = (10 * number + digit as usize).min(WIDTH_MAX);
        format.next();
    }
    number
}

fn form(format: &mut Peekable<Chars<'_>>, arguments: &mut Arguments<'_>) -> Form {
    let mut form = Form::default();
    while let Some(flag) = format.next_if(|letter| "-0#+ ,".contains(*letter)) {
        match flag {
            '-' => form.left = true,
            '0' => form.zeros = true,
            '#' => form.prefixed = true,
            _ => {}
        }
    }
    form.width = match format.next_if_eq(&'*') {
        Some(_) => (arguments.integer() as i32).unsigned_abs() as usize % (WIDTH_MAX + 1),
        None => number(format),
    };
    form.decimals = format.next_if_eq(&'.').map(|_| number(format));
    while let Some(length) = format.next_if(|letter| "lzhjt".contains(*letter)) {
        form.is_long |= length != 'h';
    }
    form
}

/// The text of a request with this format and this `va_list`; `None` if one of them cannot be read.
pub(super) fn formatted(format: u64, list: u64, memory: &dyn ProgramMemory) -> Option<String> {
    let format = memory.text(format)?;
    let mut arguments = Arguments::new(list, memory)?;
    let mut text = String::new();
    let mut letters = format.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            text.push(letter);
            continue;
        }
        let form = form(&mut letters, &mut arguments);
        match letters.next() {
            Some(letter) => convert(letter, form, &mut arguments, &mut text),
            None => break,
        }
    }
    Some(text)
}

/// Writes one value; a letter without a meaning stands for itself.
fn convert(letter: char, form: Form, arguments: &mut Arguments<'_>, text: &mut String) {
    let unsigned = |value: u64| if form.is_long { value } else { u64::from(value as u32) };
    let prefix = if form.prefixed { "0x" } else { "" };
    let value = match letter {
        'd' | 'i' if form.is_long => (arguments.integer() as i64).to_string(),
        'd' | 'i' => (arguments.integer() as i32).to_string(),
        'u' => unsigned(arguments.integer()).to_string(),
        'o' => format!("{:o}", unsigned(arguments.integer())),
        'x' => format!("{prefix}{:x}", unsigned(arguments.integer())),
        'X' => format!("{prefix}{:X}", unsigned(arguments.integer())),
        'p' => format!("{:#x}", arguments.integer()),
        'f' => format!("{:.*}", form.decimals.unwrap_or(6).min(40), arguments.float()),
        'c' => char::from(arguments.integer() as u8).to_string(),
        's' => {
            let address = arguments.integer();
            let all = if address == 0 { None } else { arguments.memory.text(address) };
            let all = all.unwrap_or_else(|| "(null)".to_owned());
            all.chars().take(form.decimals.unwrap_or(usize::MAX)).collect()
        }
        other => return text.push(other),
    };
    let width = form.width;
    let _ = match (form.left, form.zeros && !matches!(letter, 's' | 'c')) {
        (true, _) => write!(text, "{value:<width$}"),
        (false, true) => {
            let digits = value.strip_prefix('-').unwrap_or(&value);
            let sign = &value[..value.len() - digits.len()];
            write!(text, "{sign}{digits:0>width$}", width = width.saturating_sub(sign.len()))
        }
        (false, false) => write!(text, "{value:>width$}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory at address 0x1000.
    struct Bytes(Vec<u8>);

    impl ProgramMemory for Bytes {
        fn read(&self, address: u64, bytes: &mut [u8]) -> usize {
            let from = address.wrapping_sub(0x1000).min(self.0.len() as u64) as usize;
            let length = bytes.len().min(self.0.len() - from);
            bytes[..length].copy_from_slice(&self.0[from..from + length]);
            length
        }
        fn write(&self, _: u64, _: &[u8]) -> usize {
            0
        }
    }

    /// The text of a format whose first integers are in registers, and the others on the stack.
    fn text(format: &str, in_registers: usize, integers: &[u64], floats: &[f64]) -> String {
        let mut bytes = vec![0; 0x800];
        bytes[..format.len()].copy_from_slice(format.as_bytes());
        bytes[0x100..0x103].copy_from_slice(b"str");
        let mut put = |at: usize, word: u64| bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        let first = 48 - 8 * in_registers;
        put(0x200, first as u64 | 48 << 32);
        put(0x208, 0x1000 + 0x300);
        put(0x210, 0x1000 + 0x400);
        for (index, &word) in integers.iter().enumerate() {
            let in_register = index < in_registers;
            put(
                if in_register { 0x400 + first + 8 * index } else { 0x300 + 8 * (index - in_registers) },
                word,
            );
        }
        for (index, value) in floats.iter().enumerate() {
            put(0x400 + 48 + 16 * index, value.to_bits());
        }
        formatted(0x1000, 0x1200, &Bytes(bytes)).unwrap()
    }

    #[test]
    fn values_are_written_as_valgrind_writes_them() {
        let minus = -3i64 as u64;
        let all = [minus, 42, 42, 42, 255, 0x1100, u64::from(b'z'), 0x1234, 123_456_789_012, -5i64 as u64, 7];
        let format = "a %d %5d|%-5d|%05d %x %s %c %p %lu %lld %% %u";
        for in_registers in 0..=5 {
            let expected = "a -3    42|42   |00042 ff str z 0x1234 123456789012 -5 % 7";
            assert_eq!(text(format, in_registers, &all, &[]), expected);
        }
        assert_eq!(
            text("%f %.2f %5s|%-5s|", 5, &[0x1100, 0x1100], &[1.5, 2.25]),
            "1.500000 2.25   str|str  |"
        );
        assert_eq!(text("%s %#x %X %04d", 5, &[0, 255, 255, minus], &[]), "(null) 0xff FF -003");
        assert_eq!(text("%*d %.2s %hd%", 5, &[4, 7, 0x1100, 2], &[]), "   7 st 2");
    }

    #[test]
    fn what_cannot_be_read_is_no_text() {
        assert_eq!(formatted(0x1000, 0x9000, &Bytes(b"x\0".to_vec())), None);
        assert_eq!(formatted(0x9000, 0x1000, &Bytes(b"x\0".to_vec())), None);
    }

    #[test]
    fn lines_are_complete() {
        let mut printed = Printed::default();
        assert!(printed.take(7, "no newline").is_empty());
        assert_eq!(printed.take(7, " and on\nsecond\nthi"), ["**7** no newline and on", "**7** second"]);
        assert_eq!(printed.finish(7).map(String::as_str), Some("**7** thi"));
        assert_eq!(printed.finish(7), None);
        assert_eq!(printed.lines.len(), 3);
    }

    #[test]
    fn backtraces_and_dumps_stand_where_they_happened() {
        let mut printed = Printed::default();
        let frames = ["   at 0x1: f (in a)".to_owned(), "   by 0x2: g (in a)".to_owned()];
        printed.take(7, "text\n");
        printed.trace(7, &frames);
        printed.dump(0, 0);
        printed.dump(1, 0);
        printed.take(7, "open");
        printed.trace(7, &frames);
        printed.tell(7, &["told".to_owned()]);
        printed.dump(0, 1);
        let all = printed.with_dumps(0, |cut| vec![format!("dump {cut}")]);
        let expected = [
            "**7** text",
            "==7==    at 0x1: f (in a)",
            "==7==    by 0x2: g (in a)",
            "dump 0",
            "**7** open   at 0x1: f (in a)",
            "==7==    by 0x2: g (in a)",
            "--7-- told",
            "dump 1",
        ];
        assert_eq!(all, expected);
    }
}
