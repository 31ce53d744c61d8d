//! One line that is searched while it comes, piece by piece, so that nobody has to hold it whole.
//!
//! A program's carries are all that it knows of the text before, so a line of any length takes the
//! memory of a chunk. **Leaves out** where in the line a match is: the program marks the line's
//! end.

use crate::kernel::Scan;
use crate::transpose::CHUNK_BYTES;
use std::ops::ControlFlow;

/// The search of one line; made by [`Regex::long_line`](super::Regex::long_line).
pub struct LongLine<'r> {
    scan: Scan<'r>,
    /// The last bytes, which do not fill a chunk yet.
    rest: Vec<u8>,
}

impl std::fmt::Debug for LongLine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LongLine").field("rest_bytes", &self.rest.len()).finish()
    }
}

impl<'r> LongLine<'r> {
    pub(crate) fn new(scan: Scan<'r>) -> LongLine<'r> {
        LongLine { scan, rest: Vec::with_capacity(CHUNK_BYTES) }
    }

    /// Continues with the next bytes of the line, which have no terminator. Cost: one pass over
    /// them, and a copy of less than a chunk.
    pub fn feed(&mut self, mut piece: &[u8]) {
        if !self.rest.is_empty() {
            let (head, tail) = piece.split_at(piece.len().min(CHUNK_BYTES - self.rest.len()));
            self.rest.extend_from_slice(head);
            piece = tail;
            if self.rest.len() < CHUNK_BYTES {
                return;
            }
            // Within a line there are no ends of lines, so there are no marks.
            let _ = self.scan.feed(&self.rest, |_, _| ControlFlow::Continue(()));
            self.rest.clear();
        }
        let (chunks, rest) = piece.split_at(piece.len() / CHUNK_BYTES * CHUNK_BYTES);
        let _ = self.scan.feed(chunks, |_, _| ControlFlow::Continue(()));
        self.rest.extend_from_slice(rest);
    }

    /// Ends the line, and answers whether it matches.
    pub fn finish(self) -> bool {
        let found = self.scan.finish(&self.rest, |_, words| match words.iter().any(|&word| word != 0) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        found.is_break()
    }
}

#[cfg(test)]
mod tests {
    use crate::Regex;

    #[test]
    fn pieces_of_any_length_are_the_whole_line() {
        let ascii = format!("{}needle{}", "some hay, ".repeat(1500), " more hay".repeat(700));
        let other = ascii.replace("hay", "été");
        for line in [ascii.as_str(), &other, "", "needle", "x"] {
            for pattern in ["needle", r"\bneedle\b", "a.{0,30}needle", r"^some.*hay$", "zz", r"\w{6} \w+"] {
                let regex = Regex::new(pattern).unwrap();
                let expected = !line.is_empty() && regex.is_match(line.as_bytes());
                for bytes in [1, 7, 4095, 4096, 4097, 20_000] {
                    let Some(mut long) = regex.long_line() else {
                        assert!(pattern.contains('{'), "{pattern} counts characters");
                        continue;
                    };
                    line.as_bytes().chunks(bytes).for_each(|piece| long.feed(piece));
                    assert_eq!(long.finish(), expected, "{pattern} by {bytes}");
                }
            }
        }
    }
}
