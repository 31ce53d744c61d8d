//! Reads keys from text or binary input, with errors for malformed keys.
//!
//! Text has one key a line; blanks around it and empty lines are ignored (a string is its whole
//! line). Binary input is little endian without separators; strings follow their 32-bit lengths.
//! The error for a malformed key names its file, its line and the expected type.

use anyhow::{anyhow, Context, Result};
use search::Key;
use std::fmt::Display;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

/// A type of keys that can be read and written.
pub(super) trait Readable: Key {
    /// Length in bytes of a binary key.
    const BYTES: usize;
    /// Parses a key from text.
    fn parse(text: &str) -> Option<Self>;
    /// Reads a key from `BYTES` bytes.
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

/// Reads a whole file, or standard input if `path` is `-`; also returns the name for messages.
pub(super) fn contents(path: &Path) -> Result<(String, Vec<u8>)> {
    let available = available_bytes().unwrap_or(u64::MAX);
    if path.as_os_str() == "-" {
        let name = String::from("standard input");
        let bytes = whole(&name, std::io::stdin().lock(), available)?;
        return Ok((name, bytes));
    }
    let name = path.display().to_string();
    let file = File::open(path).with_context(|| format!("cannot read {name}"))?;
    let promised = file.metadata().map_or(0, |about| about.len());
    if promised > available / HELD_AT_ONCE {
        return Err(too_much(&name, promised.saturating_mul(HELD_AT_ONCE), available));
    }
    let bytes = whole(&name, file, available)?;
    Ok((name, bytes))
}

/// A build needs memory for the input, the keys and the index at once.
const HELD_AT_ONCE: u64 = 3;

/// Reads to the end, but not more than a build has memory for, because the length of a pipe is not
/// known beforehand.
fn whole(name: &str, input: impl Read, available: u64) -> Result<Vec<u8>> {
    let (mut bytes, most) = (Vec::new(), available / HELD_AT_ONCE);
    let read = input.take(most.saturating_add(1)).read_to_end(&mut bytes);
    read.with_context(|| format!("cannot read {name}"))?;
    if bytes.len() as u64 > most {
        return Err(too_much(name, (bytes.len() as u64).saturating_mul(HELD_AT_ONCE), available));
    }
    Ok(bytes)
}

fn too_much(name: &str, needed: u64, available: u64) -> anyhow::Error {
    let (needed, available) = (needed >> 20, available >> 20);
    anyhow!("{name}: an index of it needs at least {needed} MiB of memory and {available} MiB are available")
}

/// Bytes of memory that the system has available, if it says so.
fn available_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}

/// The error for a line that is not a key; `wanted` is what it should be, with its article.
pub(super) fn not_a_key(name: &str, line: usize, text: &[u8], wanted: impl Display) -> anyhow::Error {
    const SHOWN: usize = 60;
    let shown = String::from_utf8_lossy(&text[..text.len().min(SHOWN)]);
    let more = if text.len() > SHOWN { "..." } else { "" };
    anyhow!("{name}, line {line}: {shown:?}{more} is not {wanted}")
}

/// The words for a key of type `kind`, with the article: a u32 key, an i32 key.
fn a_key(kind: &str) -> String {
    let article = if kind.starts_with(['i', 'f']) { "an" } else { "a" };
    format!("{article} {kind} key")
}

/// Parses the keys of text lines; lines are counted from `first_line`.
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
            keys.push(key.ok_or_else(|| not_a_key(name, line, trimmed, a_key(K::TYPE.name())))?);
        }
        line += 1;
    }
    Ok(line)
}

/// Reads keys from complete binary numbers.
pub(super) fn parse_binary<K: Readable>(bytes: &[u8], keys: &mut Vec<K>) {
    keys.extend(bytes.chunks_exact(K::BYTES).map(K::from_le));
}

/// The error for binary input that ends inside a key.
pub(super) fn cut_short(name: &str, over: usize, kind: impl Display) -> anyhow::Error {
    anyhow!("{name}: ends with {over} bytes that are not a whole {kind} key")
}

/// Splits text into lines, each of which is a string, without their line ends.
pub(super) fn split_lines(text: &[u8]) -> Vec<&[u8]> {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    if text.is_empty() {
        return Vec::new();
    }
    text.split(|&byte| byte == b'\n').collect()
}

/// Splits binary input into strings by their 32-bit lengths; also returns the bytes used, because
/// the last string may be incomplete.
pub(super) fn split_lengths(mut bytes: &[u8]) -> (Vec<&[u8]>, usize) {
    let (whole, mut strings) = (bytes.len(), Vec::new());
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let Some((string, rest)) = rest.split_at_checked(u32::from_le_bytes(*length) as usize) else { break };
        strings.push(string);
        bytes = rest;
    }
    (strings, whole - bytes.len())
}

/// Writes answers; if the reader has closed the pipe, the command ends without a message.
pub(super) fn write(out: &mut impl Write, bytes: &[u8]) -> Result<Reader> {
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(Reader::There),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(error).context("cannot write to standard output"),
    }
}

/// Whether the reader of the answers is still there.
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
    fn key_types_have_their_articles() {
        let error = parse_lines("f", b"x", 1, &mut Vec::<i32>::new()).unwrap_err();
        assert_eq!(error.to_string(), "f, line 1: \"x\" is not an i32 key");
    }

    #[test]
    fn more_than_memory_is_said_before_it_is_read() {
        let error = whole("pipe", std::io::repeat(1), 3 << 20).unwrap_err();
        assert_eq!(
            error.to_string(),
            "pipe: an index of it needs at least 3 MiB of memory and 3 MiB are available"
        );
        assert_eq!(whole("pipe", &b"12\n"[..], 9).unwrap(), b"12\n");
    }

    #[test]
    fn strings_behind_lengths() {
        let bytes = [&2u32.to_le_bytes()[..], b"ab", &0u32.to_le_bytes(), &9u32.to_le_bytes(), b"x"].concat();
        assert_eq!(split_lengths(&bytes), (vec![&b"ab"[..], b""], 10));
        assert_eq!(split_lines(b"a\n\nb"), [&b"a"[..], b"", b"b"]);
        assert!(split_lines(b"").is_empty());
    }
}
