//! Copies texts from the host to a card.
//!
//! Copy engines reach their full speed only from pinned memory. A [`PinnedText`] is in such memory,
//! and is copied directly. Any other text is copied through two pinned buffers, by several threads,
//! because one thread is slower than the card's link. **Leaves out** pinning memory of other
//! owners, which costs more than one search gains, and which many systems refuse for mapped files.

use super::device::Cuda;
use super::driver::{DeviceMemory, DeviceStream, HostMemory};
use super::error::CudaError;
use super::work::{Buffers, Work};
use std::ops::Range;
use std::sync::Arc;

/// The number of threads that fill a pinned buffer; more gain nothing.
const FILLING_THREADS: usize = 8;

/// Smaller pieces are filled by one thread.
const FILL_BYTES: usize = 1 << 20;

/// A text in pinned memory, to be filled by its owner.
#[derive(Debug)]
pub struct PinnedText {
    memory: HostMemory,
    length: usize,
}

impl PinnedText {
    /// Pinned memory for a text of `bytes` bytes, all zero.
    ///
    /// # Errors
    /// If the system does not pin this much memory.
    pub fn new(cuda: &Arc<Cuda>, bytes: usize) -> Result<PinnedText, CudaError> {
        Ok(PinnedText { memory: HostMemory::new(&cuda.driver, bytes)?, length: bytes })
    }

    /// The text's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.memory.as_slice()[..self.length]
    }

    /// The text's bytes, to be filled.
    ///
    /// # Errors
    /// A copy that still reads them cannot be waited for.
    pub fn bytes_mut(&mut self) -> Result<&mut [u8], CudaError> {
        self.memory.as_mut_slice()
    }
}

/// A text of the host.
#[derive(Clone, Copy, Debug)]
pub enum HostText<'t> {
    /// Anywhere.
    Pageable(&'t [u8]),
    /// In pinned memory, at the link's full speed.
    Pinned(&'t PinnedText),
}

impl HostText<'_> {
    /// The text's bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            HostText::Pageable(bytes) => bytes,
            HostText::Pinned(text) => text.bytes(),
        }
    }
}

impl Buffers {
    /// The existing buffers, or new ones if those are too small.
    pub(super) fn ready<'b>(
        cuda: &Cuda,
        kept: &'b mut Option<Buffers>,
        bytes: usize,
    ) -> Result<&'b mut Buffers, CudaError> {
        if kept.as_ref().is_none_or(|buffers| buffers.bytes < bytes) {
            // The old ones go first: there may not be room for both.
            *kept = None;
            *kept = Some(Buffers::new(&cuda.driver, bytes)?);
        }
        Ok(kept.as_mut().expect("made above"))
    }

    /// Starts the copy of a piece into one of the two.
    pub(super) fn send(
        &mut self,
        copies: &DeviceStream,
        which: usize,
        text: HostText<'_>,
        piece: Range<usize>,
    ) -> Result<(), CudaError> {
        send(copies, &self.device[which], 0, &mut self.pinned[which], text, piece)?;
        copies.record(&self.copied[which])
    }
}

/// Starts the copy of a piece of a text of the host to the card.
fn send(
    copies: &DeviceStream,
    to: &DeviceMemory,
    offset: usize,
    pinned: &mut HostMemory,
    text: HostText<'_>,
    piece: Range<usize>,
) -> Result<(), CudaError> {
    match text {
        HostText::Pinned(text) => copies.send(to, offset, &text.memory, piece),
        HostText::Pageable(text) => {
            let piece = &text[piece];
            fill(&mut pinned.as_mut_slice()?[..piece.len()], piece);
            copies.send(to, offset, pinned, 0..piece.len())
        }
    }
}

/// Copies within the host, by several threads where that pays.
fn fill(to: &mut [u8], from: &[u8]) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(FILLING_THREADS);
    let part = from.len().div_ceil(threads).max(FILL_BYTES);
    if part >= from.len() {
        return to.copy_from_slice(from);
    }
    std::thread::scope(|scope| {
        for (to, from) in to.chunks_mut(part).zip(from.chunks(part)) {
            scope.spawn(|| to.copy_from_slice(from));
        }
    });
}

/// Copies a text to the card through the pinned buffers, and waits.
pub(super) fn upload(cuda: &Cuda, work: &mut Work, to: &DeviceMemory, text: &[u8]) -> Result<(), CudaError> {
    let Work { copies, buffers, .. } = work;
    let buffers = Buffers::ready(cuda, buffers, cuda.options.piece_bytes)?;
    let sent = text.chunks(buffers.bytes).enumerate().try_for_each(|(number, piece)| {
        let start = number * buffers.bytes;
        let pinned = &mut buffers.pinned[number % 2];
        send(copies, to, start, pinned, HostText::Pageable(text), start..start + piece.len())
    });
    let finished = copies.finish();
    sent.and(finished)
}
