//! Writes a stream file chunk by chunk. See the parent module for the format.

use super::format::{
    checksum, Header, BLOCK, DONE, ENTRY_BYTES, MAGIC, PAYLOAD_BYTES_MAX, RECORDS, SITE, VERSION,
};
use crate::{Block, Record, Site, Sites};
use std::io::{self, Write};

/// Writes a stream; buffering is the caller's (`BufWriter`).
pub struct Writer<W: Write> {
    out: W,
    sites: usize,
    blocks: usize,
}

impl<W: Write> Writer<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// As `out`.
    pub fn new(mut out: W, header: &Header) -> io::Result<Writer<W>> {
        out.write_all(&MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        for word in header.words() {
            out.write_all(&word.to_le_bytes())?;
        }
        Ok(Writer { out, sites: 0, blocks: 0 })
    }

    /// Writes the entries by which the tables have grown since the last call. Call it before the
    /// records that need them.
    ///
    /// # Errors
    /// As the underlying writer.
    pub fn tables(&mut self, sites: &Sites) -> io::Result<()> {
        let new = sites.sites.get(self.sites..).unwrap_or(&[]);
        self.entries(SITE, 0, new, |&Site { ip, block, index }| entry(ip, block, index))?;
        let new = sites.blocks.get(self.blocks..).unwrap_or(&[]);
        self.entries(BLOCK, 0, new, |&Block { ip, len_bytes, instructions }| {
            entry(ip, len_bytes, instructions)
        })?;
        (self.sites, self.blocks) = (sites.sites.len(), sites.blocks.len());
        Ok(())
    }

    /// Writes records of one thread.
    ///
    /// # Errors
    /// As the underlying writer.
    pub fn records(&mut self, thread: u32, records: &[Record]) -> io::Result<()> {
        self.entries(RECORDS, thread, records, |&Record { address, what, extra }| entry(address, what, extra))
    }

    /// Marks the stream as complete and hands the underlying writer back, flushed.
    ///
    /// # Errors
    /// As the underlying writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.chunk(DONE, 0, &[])?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn entries<T>(
        &mut self,
        tag: [u8; 4],
        thread: u32,
        entries: &[T],
        bytes: impl Fn(&T) -> [u8; ENTRY_BYTES],
    ) -> io::Result<()> {
        for part in entries.chunks(PAYLOAD_BYTES_MAX / ENTRY_BYTES) {
            let payload: Vec<u8> = part.iter().flat_map(&bytes).collect();
            self.chunk(tag, thread, &payload)?;
        }
        Ok(())
    }

    fn chunk(&mut self, tag: [u8; 4], thread: u32, payload: &[u8]) -> io::Result<()> {
        let mut head = [0; 8];
        head[..4].copy_from_slice(&tag);
        head[4..].copy_from_slice(&thread.to_le_bytes());
        self.out.write_all(&head)?;
        self.out.write_all(&(payload.len() as u32).to_le_bytes())?;
        self.out.write_all(&checksum(&head, payload).to_le_bytes())?;
        self.out.write_all(payload)
    }
}

fn entry(first: u64, second: u32, third: u32) -> [u8; ENTRY_BYTES] {
    let mut bytes = [0; ENTRY_BYTES];
    bytes[..8].copy_from_slice(&first.to_le_bytes());
    bytes[8..12].copy_from_slice(&second.to_le_bytes());
    bytes[12..].copy_from_slice(&third.to_le_bytes());
    bytes
}
