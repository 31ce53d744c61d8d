//! The state that searches on a card share: streams of work, memory for reuse, and the description
//! of one search.

use super::driver::{DeviceMemory, DeviceStream, Driver, Event, HostMemory};
use super::error::CudaError;
use super::lower::Width;
use std::sync::Arc;

/// Bytes behind a text that may be read: two steps of the widest group.
pub(super) const PAD_BYTES: usize = 128 << 10;

/// What searches share, one after the other.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) compute: DeviceStream,
    pub(super) copies: DeviceStream,
    /// Two, as each piece of a text reads what the one before left.
    pub(super) scratch: [SearchMemory; 2],
    pub(super) buffers: Option<Buffers>,
}

impl Work {
    /// Streams and memory on the card of `driver`.
    pub(super) fn new(driver: &Arc<Driver>) -> Result<Work, CudaError> {
        Ok(Work {
            compute: DeviceStream::new(driver)?,
            copies: DeviceStream::new(driver)?,
            scratch: [SearchMemory::new(driver)?, SearchMemory::new(driver)?],
            buffers: None,
        })
    }
}

/// Two of everything, on the card and pinned.
#[derive(Debug)]
pub(super) struct Buffers {
    pub(super) bytes: usize,
    pub(super) device: [DeviceMemory; 2],
    pub(super) pinned: [HostMemory; 2],
    pub(super) copied: [Event; 2],
}

impl Buffers {
    /// Memory for pieces of `bytes` bytes.
    pub(super) fn new(driver: &Arc<Driver>, bytes: usize) -> Result<Buffers, CudaError> {
        let device = || DeviceMemory::new(driver, bytes + PAD_BYTES);
        let pinned = || HostMemory::new(driver, bytes);
        Ok(Buffers {
            bytes,
            device: [device()?, device()?],
            pinned: [pinned()?, pinned()?],
            copied: [Event::new(driver)?, Event::new(driver)?],
        })
    }
}

/// How a text is divided into segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub(super) segment_bytes: usize,
    pub(super) segments: usize,
}

/// The results that a search must produce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wants {
    /// How many lines.
    Count,
    /// A bit per byte as well.
    Ends,
}

/// One search.
pub(super) struct Job<'j> {
    /// The text's address on the card.
    pub(super) text: u64,
    pub(super) valid: usize,
    /// The address of the last bytes of rows, where the text is a column's.
    pub(super) row_ends: Option<u64>,
    /// The carries of the first segment; `None` at the beginning of a text.
    pub(super) received: Option<u64>,
    pub(super) wants: Wants,
    /// Recorded before the first kernel and behind the last.
    pub(super) clock: Option<[&'j Event; 2]>,
}

/// Memory of searches, which grows and is used again.
#[derive(Debug)]
pub(super) struct SearchMemory {
    pub(super) counts: DeviceMemory,
    certain: DeviceMemory,
    guesses: DeviceMemory,
    pub(super) states: DeviceMemory,
    pub(super) total: DeviceMemory,
    pub(super) ends: Option<DeviceMemory>,
}

impl SearchMemory {
    pub(super) fn new(driver: &Arc<Driver>) -> Result<SearchMemory, CudaError> {
        let make = || DeviceMemory::new(driver, 16);
        Ok(SearchMemory {
            counts: make()?,
            certain: make()?,
            guesses: make()?,
            states: make()?,
            total: make()?,
            ends: None,
        })
    }

    /// Makes room for a search.
    pub(super) fn reserve(
        &mut self,
        driver: &Arc<Driver>,
        cut: Cut,
        state_words: usize,
        job: &Job<'_>,
    ) -> Result<(), CudaError> {
        self.counts.grow(driver, 4 * cut.segments)?;
        self.certain.grow(driver, 4 * cut.segments)?;
        self.guesses.grow(driver, 8 * cut.segments * state_words)?;
        self.states.grow(driver, 8 * cut.segments * state_words)?;
        if job.wants == Wants::Ends {
            let bytes = (job.valid + PAD_BYTES).div_ceil(8);
            match &mut self.ends {
                Some(ends) => ends.grow(driver, bytes)?,
                None => self.ends = Some(DeviceMemory::new(driver, bytes)?),
            }
        }
        Ok(())
    }

    /// The parameters of the kernels of a search, which counts at `total`.
    pub(super) fn task(&self, job: &Job<'_>, cut: Cut, width: Width, total: u64) -> [u64; 16] {
        let step = width.step_bytes();
        let ends = match job.wants {
            Wants::Count => None,
            Wants::Ends => self.ends.as_ref(),
        };
        [
            job.text,
            ends.map_or(0, DeviceMemory::address),
            self.counts.address(),
            self.certain.address(),
            self.guesses.address(),
            self.states.address(),
            job.received.unwrap_or(0),
            total,
            job.valid as u64,
            job.valid.div_ceil(step) as u64,
            (cut.segment_bytes / step) as u64,
            cut.segments as u64,
            job.row_ends.unwrap_or(0),
            0,
            0,
            0,
        ]
    }
}
