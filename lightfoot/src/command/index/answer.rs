//! `lightfoot index query`: reads a stream of keys and writes a stream of answers.
//!
//! Standard input is read as it arrives, all complete keys are answered in one batch, and the
//! answers are written before the next read: a pipe runs at full speed, and a user at a terminal
//! gets answers line by line. Answers are ranks in decimal or as 64-bit numbers, `1`/`0` as text or
//! a byte, or two ranks for a range.

use super::key_type::{facts, named, with_key};
use super::keys::{
    cut_short, not_a_key, parse_binary, parse_lines, split_lengths, split_lines, write, Readable, Reader,
};
use crate::cli::{IndexOp, IndexQuery, KeyInput};
use anyhow::{Context, Result};
use search::{BytesIndex, Index, KeyType};
use std::io::Read;

/// Bytes of a read: more than a pipe holds, less than a second-level cache.
const READ_BYTES: usize = 1 << 18;

const NAME: &str = "standard input";

pub(super) fn run(options: &IndexQuery) -> Result<()> {
    let path = &options.index;
    let kind = facts(path)?.kind;
    with_key!(
        kind,
        K => {
            let index = Index::<K>::open(path).map_err(|error| named(path, &error))?;
            numbers(&index, options)
        },
        {
            let index = BytesIndex::open(path).map_err(|error| named(path, &error))?;
            strings(&index, options)
        }
    )
}

/// Reads standard input in pieces; `take` answers the complete keys and returns the bytes that it
/// used.
fn stream(mut take: impl FnMut(&[u8], Piece, &mut Vec<u8>) -> Result<usize>) -> Result<()> {
    let mut input = std::io::stdin().lock();
    let mut output = std::io::stdout().lock();
    let (mut waiting, mut answers) = (Vec::with_capacity(2 * READ_BYTES), Vec::new());
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let read = input.read(&mut buffer).context("cannot read standard input")?;
        waiting.extend_from_slice(&buffer[..read]);
        let piece = if read == 0 { Piece::Last } else { Piece::More };
        answers.clear();
        let used = take(&waiting, piece, &mut answers);
        if write(&mut output, &answers)? == Reader::Gone {
            return Ok(());
        }
        waiting.drain(..used?);
        if piece == Piece::Last {
            return Ok(());
        }
    }
}

/// Whether more input follows a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    More,
    Last,
}

/// Length in bytes of the complete lines of a piece of text.
fn whole_lines(bytes: &[u8], piece: Piece) -> usize {
    match piece {
        Piece::Last => bytes.len(),
        Piece::More => bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1),
    }
}

/// Turns ranks into answers.
struct Answers {
    op: IndexOp,
    input: KeyInput,
}

impl Answers {
    /// Writes one answer per rank, or per pair of ranks for a range.
    fn write(&self, ranks: &[usize], is_there: impl Fn(usize) -> bool, out: &mut Vec<u8>) {
        match (self.op, self.input) {
            (IndexOp::Contains, KeyInput::Binary) => {
                out.extend((0..ranks.len()).map(|index| u8::from(is_there(index))))
            }
            (IndexOp::Contains, KeyInput::Text) => {
                (0..ranks.len())
                    .for_each(|index| out.extend_from_slice(if is_there(index) { b"1\n" } else { b"0\n" }));
            }
            (_, KeyInput::Binary) => {
                out.reserve(8 * ranks.len());
                ranks.iter().for_each(|&rank| out.extend_from_slice(&(rank as u64).to_le_bytes()));
            }
            (IndexOp::Rank, KeyInput::Text) => ranks.iter().for_each(|&rank| decimal(rank, b'\n', out)),
            (IndexOp::Range, KeyInput::Text) => ranks.chunks(2).for_each(|pair| {
                decimal(pair[0], b' ', out);
                decimal(pair[pair.len() - 1], b'\n', out);
            }),
        }
    }
}

/// A number in decimal and what follows it.
fn decimal(mut number: usize, end: u8, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
    out.push(end);
}

fn numbers<K: Readable>(index: &Index<K>, options: &IndexQuery) -> Result<()> {
    let answers = Answers { op: options.op, input: options.input };
    let (mut keys, mut ranks, mut line) = (Vec::<K>::new(), Vec::new(), 1);
    // A range takes two keys.
    let together = K::BYTES * if options.op == IndexOp::Range { 2 } else { 1 };
    stream(|bytes, piece, out| {
        keys.clear();
        let used = match options.input {
            KeyInput::Text => {
                let used = whole_lines(bytes, piece);
                line = match options.op {
                    IndexOp::Range => parse_pairs(&bytes[..used], line, &mut keys)?,
                    _ => parse_lines(NAME, &bytes[..used], line, &mut keys)?,
                };
                used
            }
            KeyInput::Binary => {
                let used = bytes.len() / together * together;
                parse_binary(&bytes[..used], &mut keys);
                if piece == Piece::Last && used < bytes.len() {
                    return Err(cut_short(NAME, bytes.len() - used, K::TYPE.name()));
                }
                used
            }
        };
        ranks.resize(keys.len(), 0);
        index.batch(&keys, &mut ranks);
        answers.write(&ranks, |at| index.upper_bound(keys[at]) > ranks[at], out);
        Ok(used)
    })
}

/// Parses lines of two keys each.
fn parse_pairs<K: Readable>(text: &[u8], first_line: usize, keys: &mut Vec<K>) -> Result<usize> {
    let mut line = first_line;
    for bytes in text.split_inclusive(|&byte| byte == b'\n') {
        let trimmed = bytes.trim_ascii();
        let words = std::str::from_utf8(trimmed).unwrap_or("?").split_ascii_whitespace();
        let pair: Option<Vec<K>> = words.map(K::parse).collect();
        match pair {
            Some(pair) if pair.len() == 2 => keys.extend(pair),
            _ if trimmed.is_empty() => {}
            _ => {
                return Err(not_a_key(NAME, line, trimmed, format_args!("a pair of {} keys", K::TYPE.name())))
            }
        }
        line += 1;
    }
    Ok(line)
}

fn strings(index: &BytesIndex, options: &IndexQuery) -> Result<()> {
    let answers = Answers { op: options.op, input: options.input };
    let mut ranks = Vec::new();
    let mut line = 0;
    stream(|bytes, piece, out| {
        let (mut queries, mut used) = match options.input {
            KeyInput::Text => (split_lines(&bytes[..whole_lines(bytes, piece)]), whole_lines(bytes, piece)),
            KeyInput::Binary => split_lengths(bytes),
        };
        if options.input == KeyInput::Binary && piece == Piece::Last && used < bytes.len() {
            return Err(cut_short(NAME, bytes.len() - used, KeyType::Bytes.name()));
        }
        if options.op == IndexOp::Range && options.input == KeyInput::Text {
            queries = tabbed(&queries, &mut line)?;
        } else if options.op == IndexOp::Range && queries.len() % 2 == 1 {
            used -= 4 + queries.pop().map_or(0, <[u8]>::len);
            if piece == Piece::Last {
                return Err(cut_short(NAME, bytes.len() - used, "pair of bytes"));
            }
        }
        ranks.resize(queries.len(), 0);
        index.batch(&queries, &mut ranks);
        answers.write(&ranks, |at| index.get(ranks[at]) == Some(queries[at]), out);
        Ok(used)
    })
}

/// Splits lines of two strings each, with a tab between them.
fn tabbed<'a>(lines: &[&'a [u8]], line: &mut usize) -> Result<Vec<&'a [u8]>> {
    let mut queries = Vec::with_capacity(2 * lines.len());
    for text in lines {
        *line += 1;
        let tab = text.iter().position(|&byte| byte == b'\t');
        let tab = tab.ok_or_else(|| not_a_key(NAME, *line, text, "a pair of strings with a tab between"))?;
        queries.extend([&text[..tab], &text[tab + 1..]]);
    }
    Ok(queries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_decimal() {
        let mut out = Vec::new();
        for number in [0, 7, 10, 1_234_567_890_123, usize::MAX] {
            decimal(number, b'\n', &mut out);
        }
        assert_eq!(out, format!("0\n7\n10\n1234567890123\n{}\n", usize::MAX).into_bytes());
    }

    #[test]
    fn pairs_are_two_keys() {
        let mut keys = Vec::<u64>::new();
        assert_eq!(parse_pairs(b"1 2\n\n3\t4\n", 1, &mut keys).unwrap(), 4);
        assert_eq!(keys, [1, 2, 3, 4]);
        let error = parse_pairs::<u64>(b"1 2\n5\n", 1, &mut keys).unwrap_err();
        assert_eq!(error.to_string(), "standard input, line 2: \"5\" is not a pair of u64 keys");
    }
}
