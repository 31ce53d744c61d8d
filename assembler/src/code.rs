//! The code that instructions are appended to.

use crate::instruction::Instruction;

/// Machine code under construction.
#[derive(Clone, Debug, Default)]
pub struct Assembler {
    pub(crate) bytes: Vec<u8>,
}

impl Assembler {
    /// The code so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The finished code.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// How many bytes there are.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there is no code yet.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Forgets all code; the room stays.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Appends bytes as they are: constants, or instructions that somebody else encoded.
    #[inline(always)]
    pub fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends the first `len` of sixteen bytes. Constant lengths are copied by one store.
    #[inline(always)]
    pub fn extend_from_sixteen(&mut self, bytes: &[u8; 16], len: usize) {
        let end = self.bytes.len() + len;
        self.bytes.extend_from_slice(bytes);
        self.bytes.truncate(end);
    }

    /// Overwrites the four bytes at `at`: a displacement or an immediate that is known only later.
    #[inline(always)]
    pub fn set_dword(&mut self, at: usize, value: i32) {
        self.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    #[inline(always)]
    pub(crate) fn append(&mut self, instruction: &Instruction) {
        self.extend_from_sixteen(&instruction.bytes, instruction.len);
    }
}
