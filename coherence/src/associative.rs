//! A fully associative level with LRU, of which a hit costs a store.
//!
//! **The problem.** A list in the order of uses is changed by nearly every reference, and all that
//! is wanted of it is whether a line that the first level lost would still be in this level.
//!
//! **The idea.** Each member has the time of its last use. The level is a queue by times that may
//! be out of date: they only grow, so the first of the queue is the oldest member unless its time
//! has changed; then it goes back with its true time. A member that was taken away stays in the
//! queue until it comes first, or is in the level again.
//!
//! **The queue** consists of parts. A part has the entries of a span of time, in no order, and only
//! the oldest part is brought up to date and sorted. Members that were used last of all go to the
//! newest part; members that come first and were used since go to the part of their true time. So
//! an entry is written once and sorted once, among few others, for each time that it comes first.

use std::cmp::Reverse;
use std::collections::VecDeque;

/// Entries of the newest part behind which another one begins.
const PART: usize = 32;

/// Whether a member is in the level, and whether its queue has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    /// 0 of a member that is in the level, else 1: a word that many tests can be joined to.
    pub(crate) outside: u8,
    in_queue: bool,
}

impl Standing {
    /// Of a member that neither has.
    pub(crate) const NONE: Standing = Standing { outside: 1, in_queue: false };

    /// Whether the member is in the level.
    #[inline(always)]
    pub(crate) fn in_level(self) -> bool {
        self.outside == 0
    }
}

/// What the level asks of its members, which have numbers.
pub(crate) trait Members {
    /// The time of the last use of a member, which is more than 0, and its standing.
    fn member(&mut self, member: u32) -> (u64, &mut Standing);
}

/// A member and a time at which it was used, perhaps not the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Dated {
    time: u64,
    member: u32,
}

/// Entries of the queue from a time on, up to that of the next part.
#[derive(Clone, Debug)]
struct Part {
    start: u64,
    entries: Vec<Dated>,
}

/// The level of one core.
#[derive(Clone, Debug)]
pub(crate) struct Associative {
    capacity: usize,
    /// Members that are in the level.
    held: usize,
    /// The oldest part of the queue, up to date when it was sorted, the oldest entry last.
    oldest: Vec<Dated>,
    /// The others.
    parts: VecDeque<Part>,
    /// Buffers of former parts.
    spare: Vec<Vec<Dated>>,
}

impl Associative {
    /// An empty level of this many lines.
    pub(crate) fn new(capacity: usize) -> Associative {
        let (parts, spare) = (VecDeque::new(), Vec::new());
        Associative { capacity, held: 0, oldest: Vec::new(), parts, spare }
    }

    /// Takes a member away.
    pub(crate) fn take(&mut self, standing: &mut Standing) {
        self.held -= usize::from(standing.in_level());
        standing.outside = 1;
    }

    /// Puts a member that is not in the level there; it has been used last of all. If the level is
    /// full, the oldest member leaves.
    pub(crate) fn enter(&mut self, members: &mut impl Members, member: u32) {
        let (time, standing) = members.member(member);
        standing.outside = 0;
        self.held += 1;
        if !std::mem::replace(&mut standing.in_queue, true) {
            self.newest(Dated { time, member });
        }
        while self.held > self.capacity {
            let Some(Dated { time: known, member }) = self.first(members) else { return };
            let (time, standing) = members.member(member);
            if standing.in_level() && time != known {
                self.queue(Dated { time, member });
                continue;
            }
            self.held -= usize::from(standing.in_level());
            *standing = Standing::NONE;
        }
    }

    /// Puts the entry of the member that was used last of all into the newest part.
    fn newest(&mut self, dated: Dated) {
        match self.parts.back_mut() {
            Some(part) if part.entries.len() < PART => part.entries.push(dated),
            _ => {
                let mut entries = self.spare.pop().unwrap_or_default();
                entries.push(dated);
                self.parts.push_back(Part { start: dated.time, entries });
            }
        }
    }

    /// Puts an entry into the part of its time, which is later than those of the oldest part.
    fn queue(&mut self, dated: Dated) {
        let behind = self.parts.iter().rev().take_while(|part| part.start > dated.time).count();
        let part = self.parts.len().saturating_sub(behind + 1);
        match self.parts.get_mut(part) {
            Some(part) => part.entries.push(dated),
            None => self.newest(dated),
        }
    }

    /// Takes the first entry of the queue.
    #[inline]
    fn first(&mut self, members: &mut impl Members) -> Option<Dated> {
        while self.oldest.is_empty() {
            let part = self.parts.pop_front()?;
            self.sort(part.entries, members);
        }
        self.oldest.pop()
    }

    /// Brings the entries of the oldest part up to date, and sorts those that stay in it.
    fn sort(&mut self, mut entries: Vec<Dated>, members: &mut impl Members) {
        let end = self.parts.front().map_or(u64::MAX, |part| part.start);
        for mut entry in entries.drain(..) {
            let (time, standing) = members.member(entry.member);
            if !standing.in_level() {
                *standing = Standing::NONE;
                continue;
            }
            entry.time = time;
            match entry.time < end {
                true => self.oldest.push(entry),
                false => self.queue(entry),
            }
        }
        self.spare.push(entries);
        self.oldest.sort_unstable_by_key(|entry| Reverse(entry.time));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Members that are never taken from the tables, with a list in the order of uses.
    struct Twin {
        level: Associative,
        members: Table,
        list: Vec<u32>,
        now: u64,
    }

    struct Table(Vec<(u64, Standing)>);

    impl Members for Table {
        fn member(&mut self, member: u32) -> (u64, &mut Standing) {
            let (time, standing) = &mut self.0[member as usize];
            (*time, standing)
        }
    }

    impl Twin {
        fn uses(&mut self, member: u32) {
            self.now += 1;
            self.members.0[member as usize].0 = self.now;
            if !self.members.0[member as usize].1.in_level() {
                self.level.enter(&mut self.members, member);
            }
            self.list.retain(|&other| other != member);
            self.list.insert(0, member);
            self.list.truncate(self.level.capacity);
        }

        fn takes(&mut self, member: u32) {
            self.level.take(&mut self.members.0[member as usize].1);
            self.list.retain(|&other| other != member);
        }

        fn held(&self) -> Vec<u32> {
            let all = 0..self.members.0.len() as u32;
            all.filter(|&member| self.members.0[member as usize].1.in_level()).collect()
        }
    }

    proptest! {
        /// Members are drawn more or less evenly, so that parts are short, long or out of date.
        #[test]
        fn any_uses_hold_what_a_list_in_their_order_holds(
            capacity in 1..150usize,
            power in 1..5,
            uses in prop::collection::vec((0.0..1f64, 0..12u8), 1..3000),
        ) {
            let members = Table(vec![(0, Standing::NONE); 300]);
            let mut twin = Twin { level: Associative::new(capacity), members, list: Vec::new(), now: 0 };
            for (drawn, kind) in uses {
                let member = (drawn.powi(power) * 300.0) as u32;
                match kind {
                    0 => twin.takes(member),
                    _ => twin.uses(member),
                }
                let mut list = twin.list.clone();
                list.sort_unstable();
                prop_assert_eq!(twin.held(), list);
            }
        }
    }
}
