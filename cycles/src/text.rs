//! The instructions of blocks, from the files that they were mapped from.
//!
//! A profile keeps lengths and operations of instructions; registers stand in the code alone. Code
//! that comes from no file, or whose file has changed since, has no instructions here: what is read
//! must have the lengths and operations that ran.

use iced_x86::{Decoder, DecoderOptions, Instruction};
use instrument::{Block, Profile};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Reads the code of one profile.
pub(crate) struct Text<'a> {
    profile: &'a Profile,
    files: HashMap<u32, Option<File>>,
}

impl<'a> Text<'a> {
    pub(crate) fn new(profile: &'a Profile) -> Text<'a> {
        Text { profile, files: HashMap::new() }
    }

    /// The instructions of a block; `None` where they cannot be known.
    pub(crate) fn instructions(&mut self, block: &Block) -> Option<Vec<Instruction>> {
        let module = self.profile.modules.get(block.module as usize)?;
        let open = || module.path.is_absolute().then(|| File::open(&module.path).ok()).flatten();
        let file = self.files.entry(block.module).or_insert_with(open).as_ref()?;
        let mut bytes = vec![0; block.len as usize];
        let offset = block.ip.checked_sub(module.start)?.checked_add(module.file_offset)?;
        file.read_exact_at(&mut bytes, offset).ok()?;
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
