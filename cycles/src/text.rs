//! The instructions of blocks, from the files that they were mapped from.
//!
//! A profile keeps lengths and operations of instructions; registers stand in the code alone. Code
//! that comes from no file, or whose file has changed since, has no instructions here: what is read
//! must have the lengths and operations that ran.

use crate::words::WordMap;
use iced_x86::{Decoder, DecoderOptions, Instruction};
use instrument::{Block, Profile};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Bytes that are read from a file at once.
const CHUNK_BYTES: u64 = 16 << 10;

/// Reads the code of one profile.
pub struct Text<'a> {
    profile: &'a Profile,
    files: WordMap<u32, Option<File>>,
    /// Chunks of files by module and number; a file's last one is shorter.
    chunks: WordMap<(u32, u64), Vec<u8>>,
}

impl<'a> Text<'a> {
    /// Reads nothing yet.
    pub fn new(profile: &'a Profile) -> Text<'a> {
        Text { profile, files: WordMap::default(), chunks: WordMap::default() }
    }

    /// The instructions of a block; `None` where they cannot be known.
    pub fn instructions(&mut self, block: &Block) -> Option<Vec<Instruction>> {
        let module = self.profile.modules.get(block.module as usize)?;
        let open = || module.path.is_absolute().then(|| File::open(&module.path).ok()).flatten();
        let file = self.files.entry(block.module).or_insert_with(open).as_ref()?;
        let offset = block.ip.checked_sub(module.start)?.checked_add(module.file_offset)?;
        let end = offset.checked_add(block.len.into())?;
        let mut bytes = Vec::with_capacity(block.len as usize);
        let mut at = offset;
        while at < end {
            let number = at / CHUNK_BYTES;
            let chunk = self
                .chunks
                .entry((block.module, number))
                .or_insert_with(|| chunk(file, number * CHUNK_BYTES));
            let from = (at % CHUNK_BYTES) as usize;
            let len = ((end - at) as usize).min(CHUNK_BYTES as usize - from);
            bytes.extend_from_slice(chunk.get(from..from + len)?);
            at += len as u64;
        }
        let mut decoder = Decoder::with_ip(64, &bytes, block.ip, DecoderOptions::NONE);
        let known = &self.profile.instructions[block.first as usize..][..block.count as usize];
        let instruction = |known: &instrument::Instruction| {
            let read = decoder.decode();
            let same = read.code() as u16 == known.code && read.len() == usize::from(known.len);
            same.then_some(read)
        };
        known.iter().map(instruction).collect()
    }
}

/// The bytes of a file from `offset` on, at most a chunk; fewer at its end, and where it cannot be
/// read.
fn chunk(file: &File, offset: u64) -> Vec<u8> {
    let mut bytes = vec![0; CHUNK_BYTES as usize];
    let mut len = 0;
    while len < bytes.len() {
        match file.read_at(&mut bytes[len..], offset + len as u64) {
            Ok(0) => break,
            Ok(read) => len += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    bytes.truncate(len);
    bytes
}
