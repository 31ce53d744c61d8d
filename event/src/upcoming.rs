//! Where the records lie that a consumer receives next, so that it can prefetch them.
//!
//! **Why.** Another core has written them, and fetching one line of its cache takes as long as
//! dozens of records. A core has few lines on their way at a time, so a consumer that asks for a
//! line now and then, while it works, waits less than one that asks for all of them at once.
//! **Why as numbers.** Nobody may read these records before they are copied and screened: an
//! address can be prefetched, and promises nothing. **Leaves out** the prefetch itself.

use crate::Record;

/// Bytes of a line of the host's caches.
const LINE_BYTES: usize = 64;

/// Records in a line of the host's caches.
pub const RECORDS_OF_LINE: usize = LINE_BYTES / size_of::<Record>();

/// The lines of the host's caches that hold the next records: addresses to prefetch, never to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Upcoming {
    next: usize,
    end: usize,
}

impl Upcoming {
    /// The lines of `bytes` bytes at `address`. [`Upcoming::default`] has none.
    pub fn at(address: usize, bytes: usize) -> Upcoming {
        Upcoming { next: address, end: address.saturating_add(bytes) }
    }

    /// The lines of `records`.
    pub fn of(records: &[Record]) -> Upcoming {
        Upcoming::at(records.as_ptr() as usize, size_of_val(records))
    }

    /// Whether no line is left.
    pub fn is_empty(&self) -> bool {
        self.next >= self.end
    }

    /// An address in the next line, which is passed over; `None` behind the last one.
    #[inline(always)]
    pub fn line(&mut self) -> Option<usize> {
        let line = self.next;
        let exists = line < self.end;
        self.next = if exists { line.saturating_add(LINE_BYTES) } else { line };
        exists.then_some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_with_the_records() {
        let mut lines = Upcoming::at(0x1000, 130);
        let all: Vec<usize> = std::iter::from_fn(|| lines.line()).collect();
        assert_eq!(all, [0x1000, 0x1040, 0x1080]);
        assert_eq!((lines.line(), lines.is_empty()), (None, true));
        assert_eq!(Upcoming::default().line(), None);
        assert!(Upcoming::at(0x1000, 0).is_empty() && !Upcoming::at(0x1000, 1).is_empty());
        let records = [Record::default(); 9];
        let mut lines = Upcoming::of(&records);
        assert_eq!(std::iter::from_fn(|| lines.line()).count(), 9_usize.div_ceil(RECORDS_OF_LINE));
    }
}
