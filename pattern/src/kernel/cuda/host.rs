//! Texts of the host: pieces go through two buffers on the card, and while one is searched the next is copied.
//!
//! Copy engines reach their speed only from pinned memory. A [`PinnedText`] is such memory, copied from where it is; any other text is moved through two pinned
//! buffers by several threads, as one is slower than the card's link. Each piece receives what the last segment of the one before hands on, so pieces may
//! end anywhere in a line. Left out: registering memory of others, which costs more than one search gains, and is refused for file maps by many systems.

use super::device::{Cuda, Work};
use super::driver::{Event, HostMemory, Memory, Stream};
use super::error::CudaError;
use super::resident::{GpuProgram, Job, Wants, PAD_BYTES};
use std::ops::Range;
use std::sync::Arc;

/// Threads that fill a pinned buffer; more gain nothing.
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
    /// The system does not pin so much.
    pub fn new(cuda: &Arc<Cuda>, bytes: usize) -> Result<PinnedText, CudaError> {
        Ok(PinnedText { memory: HostMemory::new(&cuda.driver, bytes)?, length: bytes })
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.memory.as_slice()[..self.length]
    }

    /// Its bytes, to be filled.
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
    fn bytes(&self) -> &[u8] {
        match self {
            HostText::Pageable(bytes) => bytes,
            HostText::Pinned(text) => text.bytes(),
        }
    }
}

/// Two of everything, on the card and pinned.
#[derive(Debug)]
pub(super) struct Buffers {
    bytes: usize,
    device: [Memory; 2],
    pinned: [HostMemory; 2],
    copied: [Event; 2],
}

impl Buffers {
    fn new(cuda: &Cuda, bytes: usize) -> Result<Buffers, CudaError> {
        let driver = &cuda.driver;
        let device = || Memory::new(driver, bytes + PAD_BYTES);
        let pinned = || HostMemory::new(driver, bytes);
        Ok(Buffers {
            bytes,
            device: [device()?, device()?],
            pinned: [pinned()?, pinned()?],
            copied: [Event::new(driver)?, Event::new(driver)?],
        })
    }

    /// Those that are there, where they are large enough.
    fn ready<'b>(
        cuda: &Cuda,
        kept: &'b mut Option<Buffers>,
        bytes: usize,
    ) -> Result<&'b mut Buffers, CudaError> {
        if kept.as_ref().is_none_or(|buffers| buffers.bytes < bytes) {
            // The old ones go first: there may not be room for both.
            *kept = None;
            *kept = Some(Buffers::new(cuda, bytes)?);
        }
        Ok(kept.as_mut().expect("made above"))
    }

    /// Starts the copy of a piece into one of the two.
    fn send(
        &mut self,
        copies: &Stream,
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
    copies: &Stream,
    to: &Memory,
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
pub(super) fn upload(cuda: &Cuda, work: &mut Work, to: &Memory, text: &[u8]) -> Result<(), CudaError> {
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

impl GpuProgram {
    /// How many lines of a text of the host match.
    ///
    /// # Errors
    /// The driver's.
    pub fn count_lines_from_host(&self, text: HostText<'_>) -> Result<u64, CudaError> {
        let mut count = 0;
        self.pieces(text, Wants::Count, &mut |_, found, _| {
            count += found;
            Ok(())
        })?;
        Ok(count)
    }

    /// Where the terminators of matching lines stand, ascending; the text's length for a last line without.
    ///
    /// # Errors
    /// The driver's.
    pub fn line_ends_from_host(&self, text: HostText<'_>) -> Result<Vec<u64>, CudaError> {
        let mut ends = Vec::new();
        self.pieces(text, Wants::Ends, &mut |place, found, work| {
            let old = ends.len();
            ends.resize(old + found as usize, 0);
            self.list(
                &work.compute,
                &work.scratch[place.which],
                place.valid,
                place.start as u64,
                &mut ends[old..],
            )
        })?;
        Ok(ends)
    }

    /// Searches piece by piece, the next one on its way meanwhile.
    fn pieces(
        &self,
        text: HostText<'_>,
        wants: Wants,
        each: &mut dyn FnMut(&Place, u64, &Work) -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        let length = text.bytes().len();
        let piece_bytes = self.piece_bytes();
        let cuda = self.cuda.clone();
        let work = &mut *cuda.work();
        let mut kept = work.buffers.take();
        let buffers = Buffers::ready(&cuda, &mut kept, piece_bytes.min(length.next_multiple_of(1 << 16)))?;
        let result = self.piece_by_piece(text, wants, work, buffers, piece_bytes, each);
        // Whatever happened, no copy may still read the text.
        let finished = work.copies.finish().and(work.compute.finish());
        work.buffers = kept;
        result.and(finished)
    }

    fn piece_by_piece(
        &self,
        text: HostText<'_>,
        wants: Wants,
        work: &mut Work,
        buffers: &mut Buffers,
        piece_bytes: usize,
        each: &mut dyn FnMut(&Place, u64, &Work) -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        let bytes = text.bytes();
        let pieces = bytes.len().div_ceil(piece_bytes);
        let range = |number: usize| number * piece_bytes..bytes.len().min((number + 1) * piece_bytes);
        if pieces > 0 {
            buffers.send(&work.copies, 0, text, range(0))?;
        }
        let mut received = None;
        for number in 0..pieces {
            let which = number % 2;
            if number + 1 < pieces {
                // The search of the piece before last, which used this buffer, has ended: each is waited for below.
                buffers.send(&work.copies, 1 - which, text, range(number + 1))?;
            }
            let piece = range(number);
            let mut valid = piece.len();
            work.compute.wait_for(&buffers.copied[which])?;
            if number + 1 == pieces && bytes.last() != Some(&self.program.terminator) {
                work.compute.write(&buffers.device[which], valid, &[self.program.terminator])?;
                valid += 1;
            }
            let job = Job { text: &buffers.device[which], valid, received, wants, clock: None };
            let found = self.run(&work.compute, &mut work.scratch[which], &job)?;
            received = self.handed_on(&work.scratch[which], valid);
            each(&Place { which, start: piece.start, valid }, found, work)?;
        }
        Ok(())
    }
}

/// A piece that was searched.
struct Place {
    which: usize,
    start: usize,
    valid: usize,
}
