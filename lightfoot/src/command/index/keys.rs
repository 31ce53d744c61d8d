//! Keys from text or binary input, and what to say when they are not keys.
//!
//! Text: one key a line, blanks around it and empty lines ignored (a string is its line, byte for byte). Binary: little endian, no separators; strings behind a 32-bit
//! length. A key that does not parse is named with its file, line and the type expected.

use anyhow::{anyhow, Context, Result};
use search::Key;
use std::fmt::Display;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

/// A key that can be read and written here.
pub(super) trait Readable: Key {
    /// Bytes of a binary key.
    const BYTES: usize;
    /// The key that a text says.
    fn parse(text: &str) -> Option<Self>;
    /// The key that `BYTES` bytes are.
    fn from_le(bytes: &[u8]) -> Self;
}

macro_rules! define_readable {
    ($($key:ty),*) => {$(
        impl Readable for $key {
            const BYTES: usize = size_of::<$key>();

            fn parse(text: &str) -> Option<Self> {
                text.parse().ok()
            }

            #[inline(always)]
            fn from_le(bytes: &[u8]) -> Self {
                <$key>::from_le_bytes(bytes.try_into().expect("a key's bytes"))
            }
        }
    )*};
}

define_readable!(u32, i32, u64, i64, f32, f64, u128);

/// Everything in a file, or on standard input when `path` is `-`; what it is called goes with it.
pub(super) fn contents(path: &Path) -> Result<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    if path.as_os_str() == "-" {
        std::io::stdin().lock().read_to_end(&mut bytes).context("cannot read standard input")?;
        return Ok(("standard input".into(), bytes));
    }
    let name = path.display().to_string();
    let mut file = File::open(path).with_context(|| format!("cannot read {name}"))?;
    refuse_more_than_memory(&name, &file)?;
    file.read_to_end(&mut bytes).with_context(|| format!("cannot read {name}"))?;
    Ok((name, bytes))
}

/// A build holds the file, the keys and the index at once; what cannot fit is said before work begins.
fn refuse_more_than_memory(name: &str, file: &File) -> Result<()> {
    let needed = file.metadata().map_or(0, |about| about.len()).saturating_mul(3);
    let available = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()
    });
    match available {
        Some(kib) if needed > kib << 10 => {
            let (needed, available) = (needed >> 20, kib >> 10);
            Err(anyhow!(
                "{name}: an index of it needs about {needed} MiB of memory and {available} MiB are available"
            ))
        }
        _ => Ok(()),
    }
}

/// What a text line should have been.
pub(super) fn not_a_key(name: &str, line: usize, text: &[u8], kind: impl Display) -> anyhow::Error {
    const SHOWN: usize = 60;
    let shown = String::from_utf8_lossy(&text[..text.len().min(SHOWN)]);
    let more = if text.len() > SHOWN { "..." } else { "" };
    anyhow!("{name}, line {line}: {shown:?}{more} is not a {kind} key")
}

/// The keys of text lines; lines are counted from `first_line`.
pub(super) fn parse_lines<K: Readable>(
    name: &str,
    text: &[u8],
    first_line: usize,
    keys: &mut Vec<K>,
) -> Result<usize> {
    let mut line = first_line;
    for bytes in text.split_inclusive(|&byte| byte == b'\n') {
        let trimmed = bytes.trim_ascii();
        if !trimmed.is_empty() {
            let key = std::str::from_utf8(trimmed).ok().and_then(K::parse);
            keys.push(key.ok_or_else(|| not_a_key(name, line, trimmed, K::TYPE.name()))?);
        }
        line += 1;
    }
    Ok(line)
}

/// The keys of whole binary numbers.
pub(super) fn parse_binary<K: Readable>(bytes: &[u8], keys: &mut Vec<K>) {
    keys.extend(bytes.chunks_exact(K::BYTES).map(K::from_le));
}

/// Binary input that ends inside a key.
pub(super) fn cut_short(name: &str, over: usize, kind: impl Display) -> anyhow::Error {
    anyhow!("{name}: ends with {over} bytes that are not a whole {kind} key")
}

/// The strings of text lines: every line is one, without its line end.
pub(super) fn split_lines(text: &[u8]) -> Vec<&[u8]> {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    if text.is_empty() {
        return Vec::new();
    }
    text.split(|&byte| byte == b'\n').collect()
}

/// The strings behind 32-bit lengths, and how many bytes they took: the rest is a string not whole yet.
pub(super) fn split_lengths(mut bytes: &[u8]) -> (Vec<&[u8]>, usize) {
    let (whole, mut strings) = (bytes.len(), Vec::new());
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let Some((string, rest)) = rest.split_at_checked(u32::from_le_bytes(*length) as usize) else { break };
        strings.push(string);
        bytes = rest;
    }
    (strings, whole - bytes.len())
}

/// Writes answers; a reader that has gone away ends the command in silence.
pub(super) fn write(out: &mut impl Write, bytes: &[u8]) -> Result<Reader> {
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(Reader::There),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(error).context("cannot write to standard output"),
    }
}

/// Whether anyone still reads the answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    There,
    Gone,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_keys_or_named() {
        let mut keys = Vec::<i32>::new();
        assert_eq!(parse_lines("f", b" 1\r\n\n-2\n3", 1, &mut keys).unwrap(), 5);
        assert_eq!(keys, [1, -2, 3]);
        let error = parse_lines("f", b"1\n4294967296\n", 1, &mut Vec::<u32>::new()).unwrap_err();
        assert_eq!(error.to_string(), "f, line 2: \"4294967296\" is not a u32 key");
    }

    #[test]
    fn strings_behind_lengths() {
        let bytes = [&2u32.to_le_bytes()[..], b"ab", &0u32.to_le_bytes(), &9u32.to_le_bytes(), b"x"].concat();
        assert_eq!(split_lengths(&bytes), (vec![&b"ab"[..], b""], 10));
        assert_eq!(split_lines(b"a\n\nb"), [&b"a"[..], b"", b"b"]);
        assert!(split_lines(b"").is_empty());
    }
}
