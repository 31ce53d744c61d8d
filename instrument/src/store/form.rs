//! Numbers as bytes and back: little-endian, without padding. Every read is checked.

use crate::code::kept_table::{EncodedRows, KeptRow, KeptTable};

/// Writes a file's body.
#[derive(Default)]
pub(super) struct Writer {
    pub(super) bytes: Vec<u8>,
}

impl Writer {
    pub(super) fn u32(&mut self, value: u32) {
        self.bytes.extend(value.to_le_bytes());
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.bytes.extend(value.to_le_bytes());
    }

    /// Writes a number of bytes, then the bytes.
    pub(super) fn blob(&mut self, bytes: &[u8]) {
        self.u64(bytes.len() as u64);
        self.bytes.extend(bytes);
    }

    /// Writes a number of items, then the items in rows of `BYTES` bytes each. Much faster than
    /// [`Writer::list`], because room is made once for all.
    pub(super) fn rows<const BYTES: usize, T>(&mut self, items: &[T], put: impl Fn(&mut Row, &T)) {
        self.u64(items.len() as u64);
        let start = self.bytes.len();
        self.bytes.resize(start + BYTES * items.len(), 0);
        for (rest, item) in self.bytes[start..].chunks_exact_mut(BYTES).zip(items) {
            let row = &mut Row { rest };
            put(row, item);
            debug_assert!(row.rest.is_empty(), "a row has {BYTES} bytes");
        }
    }

    /// Writes the number of a table's rows, then the rows: those of a file as they lie there.
    pub(super) fn table<const BYTES: usize, T: KeptRow>(
        &mut self,
        table: &KeptTable<T>,
        put: impl Fn(&mut Row, &T),
    ) {
        debug_assert_eq!(BYTES, T::BYTES);
        let (kept, own) = table.parts();
        let at = self.bytes.len();
        self.u64(0);
        self.bytes.extend(kept);
        // `rows` writes the number of its own items, which is not the table's.
        let mut behind = Writer::default();
        behind.rows::<BYTES, T>(own, put);
        self.bytes.extend(&behind.bytes[8..]);
        self.bytes[at..at + 8].copy_from_slice(&(table.len() as u64).to_le_bytes());
    }

    /// Writes a number of items, then the items.
    pub(super) fn list<T>(&mut self, items: &[T], mut item: impl FnMut(&mut Writer, &T)) {
        self.u64(items.len() as u64);
        for one in items {
            item(self, one);
        }
    }
}

/// A row of a list, which is filled from the front.
pub(super) struct Row<'a> {
    rest: &'a mut [u8],
}

impl Row<'_> {
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        let (front, rest) = std::mem::take(&mut self.rest).split_at_mut(N);
        front.copy_from_slice(&bytes);
        self.rest = rest;
    }

    pub(super) fn u8(&mut self, value: u8) {
        self.put([value]);
    }

    pub(super) fn u16(&mut self, value: u16) {
        self.put(value.to_le_bytes());
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.put(value.to_le_bytes());
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.put(value.to_le_bytes());
    }
}

/// Reads a file's body. Every method returns `None` if the bytes end too early.
#[derive(Clone)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|bytes| bytes[0])
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn blob(&mut self) -> Option<&'a [u8]> {
        // No bytes in memory have a length that does not fit into `usize`.
        let bytes = self.u64()?;
        self.take(usize::try_from(bytes).ok()?)
    }

    fn count(&mut self) -> Option<usize> {
        usize::try_from(self.u64()?).ok()
    }

    /// Reads a list of items that take at least `item_bytes` each.
    pub(super) fn list<T>(
        &mut self,
        item_bytes: usize,
        mut item: impl FnMut(&mut Reader<'a>) -> Option<T>,
    ) -> Option<Vec<T>> {
        // The remaining bytes limit the number of items, so a forged count is refused before memory
        // is allocated.
        let count = self.count()?;
        if count > self.rest.len() / item_bytes {
            return None;
        }
        let mut list = Vec::with_capacity(count);
        for _ in 0..count {
            list.push(item(self)?);
        }
        Some(list)
    }

    /// Finds the rows of a table and leaves them encoded.
    pub(super) fn table<T: KeptRow>(&mut self) -> Option<EncodedRows<'a, T>> {
        let bytes = self.count()?.checked_mul(T::BYTES)?;
        self.take(bytes).map(EncodedRows::new)
    }

    /// Reads a list of items of `BYTES` bytes each; one check covers the whole list.
    pub(super) fn rows<const BYTES: usize, T>(
        &mut self,
        mut item: impl FnMut(&mut Reader<'a>) -> Option<T>,
    ) -> Option<Vec<T>> {
        // The file is long and read at every start, so the length is checked once for all rows.
        let bytes = self.count()?.checked_mul(BYTES)?;
        let (rows, _) = self.take(bytes)?.as_chunks::<BYTES>();
        // The run mostly adds some rows. Without room for them the first one would move the list.
        let mut list = Vec::with_capacity(rows.len() + rows.len() / 8);
        for row in rows {
            list.push(item(&mut Reader { rest: row })?);
        }
        Some(list)
    }
}
