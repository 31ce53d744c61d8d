//! Marks that wait in a segment until it is handed over.
//!
//! **Why.** Handing a segment to the observer at each mark wakes the observer each time, 25 to 50
//! µs where it has a core of its own, and a program may reach marks a hundred thousand times. While
//! an image has one thread, nothing can come between its records, so a mark may stand within the
//! segment, and the observer divides the records there.
//!
//! **A second thread.** What was done until it begins comes before all of its records. The first
//! one may run then, so the records behind its last mark stay where they are, and only those before
//! are handed over.

use super::ring::{MarkWithin, Segment, SegmentId};
use std::collections::HashMap;

/// Most marks that wait in a segment: a thread may reach them and record nothing between.
const MARKS_MAX: usize = 4096;

/// The marks of a segment that is being filled.
#[derive(Default)]
struct Waiting {
    segment: u32,
    /// Number of its first records that the observer has already.
    delivered: usize,
    marks: Vec<MarkWithin>,
}

/// The marks of all segments that are being filled, by image and context.
#[derive(Default)]
pub(super) struct MarksWithin(HashMap<(u32, usize), Waiting>);

impl MarksWithin {
    /// Notes a mark in the segment that a context fills; returns whether there was room.
    pub(super) fn note(&mut self, (image, context, segment): SegmentId, mark: MarkWithin) -> bool {
        let waiting = self.0.entry((image, context)).or_default();
        debug_assert!(waiting.marks.is_empty() || waiting.segment == segment);
        waiting.segment = segment;
        let has_room = waiting.marks.len() < MARKS_MAX;
        if has_room {
            waiting.marks.push(mark);
        }
        has_room
    }

    /// Gives a segment that is handed over its marks, and takes away what the observer has.
    pub(super) fn complete(&mut self, segment: &mut Segment) {
        let (image, context, _) = segment.id;
        let Some(Waiting { delivered, marks, .. }) = self.0.remove(&(image, context)) else { return };
        let delivered = delivered.min(segment.count);
        segment.skip(delivered);
        segment.marks = marks;
        for mark in &mut segment.marks {
            mark.behind = mark.behind.saturating_sub(delivered);
        }
    }

    /// The context of an image in whose segment marks wait, if there is one.
    pub(super) fn of_image(&self, image: u32) -> Option<usize> {
        let mut all = self.0.iter().filter(|((of, _), waiting)| *of == image && !waiting.marks.is_empty());
        all.next().map(|((_, context), _)| *context)
    }

    /// Reduces a segment to the records before its last mark, and gives it the marks.
    pub(super) fn divide(&mut self, segment: &mut Segment) {
        let (image, context, _) = segment.id;
        let Some(waiting) = self.0.get_mut(&(image, context)) else { return };
        let until = waiting.marks.last().map_or(0, |mark| mark.behind);
        let delivered = std::mem::replace(&mut waiting.delivered, until);
        segment.count = until;
        segment.skip(delivered);
        segment.marks = std::mem::take(&mut waiting.marks);
        for mark in &mut segment.marks {
            mark.behind = mark.behind.saturating_sub(delivered);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mark::Deed;

    fn mark(behind: usize) -> MarkWithin {
        MarkWithin { behind, ticks: None, deeds: vec![Deed::Rest] }
    }

    fn places(segment: &Segment) -> Vec<usize> {
        segment.marks.iter().map(|mark| mark.behind).collect()
    }

    #[test]
    fn a_second_thread_divides_a_segment_and_nothing_is_handed_over_twice() {
        let mut within = MarksWithin::default();
        let id = (3, 1, 2);
        assert_eq!(within.of_image(3), None);
        assert!(within.note(id, mark(10)) && within.note(id, mark(30)));
        assert_eq!((within.of_image(3), within.of_image(4)), (Some(1), None));
        let mut first = Segment::of_test(id, 4096, 45);
        within.divide(&mut first);
        assert_eq!((first.offset, first.count, places(&first)), (4096, 30, vec![10, 30]));
        assert_eq!(within.of_image(3), None, "no mark waits any longer");
        assert!(within.note(id, mark(50)));
        let mut rest = Segment::of_test(id, 4096, 60);
        within.complete(&mut rest);
        assert_eq!((rest.offset, rest.count, places(&rest)), (4096 + 30 * 16, 30, vec![20]));
        let mut next = Segment::of_test(id, 0, 7);
        within.complete(&mut next);
        assert_eq!((next.offset, next.count, places(&next)), (0, 7, vec![]));
    }

    #[test]
    fn marks_without_records_between_do_not_pile_up() {
        let mut within = MarksWithin::default();
        let noted = (0..2 * MARKS_MAX).take_while(|_| within.note((0, 0, 0), mark(5))).count();
        assert_eq!(noted, MARKS_MAX);
    }
}
