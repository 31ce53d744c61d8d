//! From a bit per byte to the positions of one bits, in order.
//!
//! A segment's positions begin behind those of all segments before it: sums of the counts that a
//! search left, which the host makes. The card then writes all segments' positions at once.

use super::device::Cuda;
use super::driver::{DeviceMemory, DeviceStream, Driver, Grid};
use super::error::CudaError;
use super::work::Cut;
use std::sync::Arc;

/// Kernels that no program is special to.
pub(super) const LINES: &str = include_str!("lines.cu");

/// One bits of a text on the card.
pub(super) struct Marks<'m> {
    /// A bit per byte.
    pub(super) bits: &'m DeviceMemory,
    /// One bits of each segment, of 32 bits each.
    pub(super) counts: &'m DeviceMemory,
    pub(super) cut: Cut,
    pub(super) valid: usize,
    /// What is added to each position.
    pub(super) base: u64,
}

/// Positions on the card, and what listing them takes; the memory is used again.
#[derive(Debug)]
pub(super) struct Positions {
    /// Of 64 bits each, ascending.
    pub(super) places: DeviceMemory,
    /// Where each segment's positions begin.
    offsets: DeviceMemory,
}

impl Positions {
    pub(super) fn new(driver: &Arc<Driver>) -> Result<Positions, CudaError> {
        Ok(Positions { places: DeviceMemory::new(driver, 0)?, offsets: DeviceMemory::new(driver, 0)? })
    }
}

/// Writes the positions of all one bits, of which there are `count`; does not wait for them.
pub(super) fn list(
    cuda: &Cuda,
    stream: &DeviceStream,
    marks: &Marks<'_>,
    count: usize,
    positions: &mut Positions,
) -> Result<(), CudaError> {
    if count == 0 {
        return Ok(());
    }
    positions.places.grow(&cuda.driver, 8 * count)?;
    let mut counts = vec![0u8; 4 * marks.cut.segments];
    stream.read(marks.counts, 0, &mut counts)?;
    let mut next = 0u64;
    let counts =
        counts.chunks_exact(4).map(|bytes| u32::from_le_bytes(bytes.try_into().expect("four bytes")));
    let offsets: Vec<u64> = counts
        .map(|count| {
            let at = next;
            next += u64::from(count);
            at
        })
        .collect();
    assert_eq!(next, count as u64, "the segments' counts are those of the sum");
    positions.offsets.grow(&cuda.driver, 8 * offsets.len())?;
    stream.write(&positions.offsets, 0, &to_bytes(&offsets))?;
    let mut task = [0u64; 16];
    task[1] = marks.bits.address();
    task[5] = positions.offsets.address();
    task[6] = positions.places.address();
    task[9] = marks.cut.segments as u64;
    task[10] = (marks.cut.segment_bytes / 64) as u64;
    task[11] = marks.valid.div_ceil(64) as u64;
    task[14] = marks.base;
    stream.launch(&*cuda.kernel(LINES, "list")?, Grid::new(marks.cut.segments.div_ceil(8), 256), &task)
}

/// The first words of memory on the card; waits for them.
pub(super) fn read_words(
    stream: &DeviceStream,
    from: &DeviceMemory,
    count: usize,
) -> Result<Vec<u64>, CudaError> {
    let mut bytes = vec![0; 8 * count];
    stream.read(from, 0, &mut bytes)?;
    Ok(bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes"))).collect())
}

/// Words as the card has them.
pub(super) fn to_bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
