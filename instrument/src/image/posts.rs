//! The image's side of requests that threads post: where they lie, and how they are answered.

use super::Image;
use crate::target::bell::place_offset;
use crate::target::layout::{context, CONTEXTS};

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The thread goes on where it wanted to.
    GoOn,
    /// The thread goes on at this address.
    GoOnAt(u64),
    /// The thread stops by a breakpoint, and its exit's number stays.
    Stop,
}

impl Image {
    /// Whether the image's threads post their requests from now on, if the run has a bell. Threads
    /// that have begun to hand over still do so as before.
    pub(crate) fn set_posting(&mut self, posts: bool) {
        self.posts = posts && self.bell.is_some();
        (0..self.used).for_each(|context| self.begin_posts_in(context));
    }

    /// Prepares a context for requests.
    pub(super) fn begin_posts(&self, context: usize) {
        let address = CONTEXTS + context as u64 * context::BYTES;
        self.write32(context, context::POSTED, 0);
        self.write64(context, context::POSTED_ADDRESS, address + u64::from(context::POSTED));
        let place = self.translator.cache.layout.bell() + place_offset(self.number, context) as u64;
        self.write64(context, context::BELL_PLACE, place);
        self.begin_posts_in(context);
    }

    /// Tells a context's thread how it hands over.
    fn begin_posts_in(&self, context: usize) {
        let routines = &self.translator.cache.zones[0].routines;
        let routine = if self.posts { routines.post } else { routines.trap };
        self.write64(context, context::HAND_OVER, routine);
        self.write64(context, context::LEAVE_RING, routines.full_ring);
    }

    /// Whether the thread of a context waits for the answer to a request.
    pub(crate) fn has_posted(&self, context: usize) -> bool {
        self.bell.is_some() && self.read32(context, context::POSTED) != 0
    }

    /// Answers the request of a context's thread.
    pub(crate) fn answer_post(&self, context: usize, answer: Answer) {
        let trap = self.translator.cache.zones[0].routines.trap;
        match answer {
            Answer::GoOn => self.write32(context, context::EXIT, 0),
            Answer::GoOnAt(code) => {
                self.write32(context, context::EXIT, 0);
                self.write64(context, context::CONTINUE, code);
            }
            Answer::Stop => self.write64(context, context::CONTINUE, trap),
        }
        let posted = self.context(context) + context::POSTED as usize;
        self.shared.swap32(posted, 0);
        if self.read32(context, context::ASLEEP) != 0 {
            self.shared.futex_wake(posted);
        }
    }
}
