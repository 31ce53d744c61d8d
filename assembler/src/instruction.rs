//! One instruction while it is composed: bytes that stay in registers until they are appended.

/// One instruction under construction. The architecture allows fifteen bytes.
#[derive(Clone, Copy)]
pub(crate) struct Instruction {
    pub(crate) bytes: [u8; 16],
    pub(crate) len: usize,
}

impl Instruction {
    #[inline(always)]
    pub(crate) fn new() -> Instruction {
        Instruction { bytes: [0; 16], len: 0 }
    }

    #[inline(always)]
    pub(crate) fn byte(&mut self, byte: u8) {
        // The mask spares the check of a bound that no instruction reaches.
        self.bytes[self.len & 15] = byte;
        self.len += 1;
    }

    #[inline(always)]
    pub(crate) fn dword(&mut self, value: i32) {
        value.to_le_bytes().into_iter().for_each(|byte| self.byte(byte));
    }
}
