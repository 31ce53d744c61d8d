//! Searches texts in the host's memory: pieces go through two buffers on the card, and while one is
//! searched the next is copied.
//!
//! The carries of a piece's last segment go to the next piece, so pieces may end anywhere in a
//! line.

use super::error::CudaError;
use super::pinned::HostText;
use super::resident::GpuProgram;
use super::work::{Buffers, Job, Wants, Work};

impl GpuProgram {
    /// Counts the matching lines of a text in the host's memory.
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

    /// Where the terminators of matching lines stand, ascending; the text's length for a last line
    /// without.
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

    /// Searches piece by piece, and copies the next piece meanwhile.
    fn pieces(
        &self,
        text: HostText<'_>,
        wants: Wants,
        each: &mut dyn FnMut(&SearchedPiece, u64, &Work) -> Result<(), CudaError>,
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
        each: &mut dyn FnMut(&SearchedPiece, u64, &Work) -> Result<(), CudaError>,
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
                // The search of the piece before last, which used this buffer, has ended: each is
                // waited for below.
                buffers.send(&work.copies, 1 - which, text, range(number + 1))?;
            }
            let piece = range(number);
            let mut valid = piece.len();
            work.compute.wait_for(&buffers.copied[which])?;
            if number + 1 == pieces && bytes.last() != Some(&self.program.terminator) {
                work.compute.write(&buffers.device[which], valid, &[self.program.terminator])?;
                valid += 1;
            }
            let job = Job {
                text: buffers.device[which].address(),
                valid,
                row_ends: None,
                received,
                wants,
                clock: None,
            };
            let found = self.run(&work.compute, &mut work.scratch[which], &job)?;
            received = self.handed_on(&work.scratch[which], valid);
            each(&SearchedPiece { which, start: piece.start, valid }, found, work)?;
        }
        Ok(())
    }
}

/// A piece that was searched.
struct SearchedPiece {
    which: usize,
    start: usize,
    valid: usize,
}
