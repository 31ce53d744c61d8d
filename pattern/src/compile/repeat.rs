//! Repetitions: one addition where a class repeats, doubling where it repeats a certain number of
//! times, a fixed point for the rest.
//!
//! Runs by doubling: `run(2k)[i] = run(k)[i] ∧ run(k)[i-k]` says that the `2k` bytes up to `i` are
//! members, so `c{n}` costs about `2 log n` operations and all uses of the same class share them.
//! `c{0,n}` from markers is what lies at most `n` behind a marker, by doubling as well, and what
//! any number of members reaches, one addition: the marker that reaches a place through members is
//! nearer to it than any marker that does not.

use super::class::ByteSet;
use super::compiler::{Compiler, Follow, Markers, Side};
use super::error::CompileError;
use super::utf8::{as_bytes, as_ranges, ClassStreams, Ranges};
use crate::program::Value;
use regex_syntax::hir::{Hir, HirKind, Repetition};

/// A repetition that leaves out fewer members is followed step by step.
const FEWEST_SMEARED: u32 = 3;

impl Compiler<'_> {
    pub(super) fn repetition(
        &mut self,
        repetition: &Repetition,
        markers: Markers,
        follow: Follow,
    ) -> Result<Markers, CompileError> {
        let (min, mut max) = (repetition.min, repetition.max);
        // At the end of the expression the shortest match suffices, and from markers everywhere a
        // repetition reaches no new positions.
        if follow.is_end || self.is_everywhere(markers) {
            max = Some(min);
        }
        let sub = &*repetition.sub;
        if let Some(set) = single_bytes(sub) {
            return Ok(self.repeat_bytes(set, min, max, markers));
        }
        let Some(ranges) = single_class(sub) else {
            return self.repeat_any(sub, min, max, markers, follow);
        };
        let (side, streams) = (self.side_of(&ranges), self.unicode[&ranges]);
        self.repeat_characters(&streams, side, min, max, markers)
    }

    // --- classes of bytes

    fn repeat_bytes(&mut self, set: ByteSet, min: u32, max: Option<u32>, markers: Markers) -> Markers {
        let class = self.bytes(set);
        let passed = self.pass(class, min, markers);
        let moved = match max {
            None => self.star_of_bytes(class, passed),
            Some(max) => self.up_to(class, max.saturating_sub(min), passed),
        };
        let side = self.side_of_bytes(set);
        Markers { before: side_after(markers, side, min, max), ..moved }
    }

    /// Markers moved over any number of members.
    fn star_of_bytes(&mut self, class: Value, markers: Markers) -> Markers {
        if !self.has_marked_rows() {
            return Markers { at: self.builder.match_star(markers.at, class), ..markers };
        }
        let within = self.within_row(class);
        let at = self.builder.match_star(markers.at, within);
        let members = self.builder.and(at, class);
        let ended = self.at_row_end(members);
        Markers { at, end: self.builder.or(markers.end, ended), ..markers }
    }

    /// Markers moved over exactly `count` members.
    fn pass(&mut self, class: Value, count: u32, markers: Markers) -> Markers {
        match count {
            0 => return markers,
            1 => return self.step(markers.at, class, Side::Unknown),
            _ => {}
        }
        // A marker that arrives in another row stands on no run there: that would begin before it.
        let run = self.run(class, count);
        let arrived = self.builder.advance(markers.at, count - 1);
        let arrived = if self.builder.ones() == markers.at { markers.at } else { arrived };
        self.note_run(run, class);
        self.step(arrived, run, Side::Unknown)
    }

    fn note_run(&mut self, run: Value, class: Value) {
        self.note_within_lines(run, class);
    }

    /// Positions at which `length` members end.
    fn run(&mut self, class: Value, length: u32) -> Value {
        let (mut run, mut done) = (class, 1);
        while done < length {
            let more = done.min(length - done);
            // Two overlapping shorter runs make a longer one: the last `done` bytes, and the `done`
            // bytes that end `more` before.
            let earlier = match self.has_marked_rows() {
                true => self.within_row(run),
                false => run,
            };
            let earlier = self.builder.advance(earlier, more);
            run = self.builder.and(run, earlier);
            done += more;
        }
        run
    }

    /// Markers moved over 0 to `count` members.
    fn up_to(&mut self, class: Value, count: u32, markers: Markers) -> Markers {
        if count >= FEWEST_SMEARED && !self.has_marked_rows() {
            let near = self.smear(markers.at, count);
            let reached = self.builder.match_star(markers.at, class);
            return Markers { at: self.builder.and(near, reached), ..markers };
        }
        let (mut reached, mut done) = (markers, 0);
        while done < count && reached.at != self.builder.zero() {
            let more = if done == 0 { 1 } else { done.min(count - done) };
            let further = self.pass(class, more, reached);
            reached = self.either(reached, further);
            done += more;
        }
        reached
    }

    /// Positions at most `count` behind a marker.
    fn smear(&mut self, markers: Value, count: u32) -> Value {
        let (mut near, mut done) = (markers, 0);
        while done < count {
            let more = (done + 1).min(count - done);
            let further = self.builder.advance(near, more);
            near = self.builder.or(near, further);
            done += more;
        }
        near
    }

    // --- classes of characters

    fn repeat_characters(
        &mut self,
        class: &ClassStreams,
        side: Side,
        min: u32,
        max: Option<u32>,
        markers: Markers,
    ) -> Result<Markers, CompileError> {
        let mut now = markers;
        for _ in 0..min {
            now = self.next(now.at, class, side);
            self.within_limit()?;
        }
        let mut all = now;
        match max {
            None => all = self.star_of_characters(class, now),
            Some(max) => {
                for _ in min..max {
                    now = self.next(now.at, class, side);
                    all = self.either(all, now);
                    self.within_limit()?;
                }
            }
        }
        Ok(Markers { before: side_after(markers, side, min, max), ..all })
    }

    /// Markers moved over any number of members: one addition through members' last bytes, leads
    /// and middles.
    fn star_of_characters(&mut self, class: &ClassStreams, all: Markers) -> Markers {
        if self.is_everywhere(all) {
            return all;
        }
        let markers = all.at;
        let structure = self.structure();
        // Where a sequence broke off, the byte here is not part of the run, but a marker may start
        // from it.
        let stranded = self.builder.and(markers, structure.expected);
        let stranded = self.builder.and(stranded, class.ascii);
        let stranded = self.next_in_row(stranded);
        let mut start = self.builder.or(markers, stranded);
        for length in 0..3 {
            let member = self.long_member(markers, class, length);
            let passed = self.next_in_row(member);
            start = self.builder.or(start, passed);
        }
        let lead = structure.any_lead(&mut self.builder);
        let opening = self.builder.or(class.ascii, lead);
        let mut run = self.builder.and_not(opening, structure.expected);
        run = self.builder.or(run, structure.middle);
        for last in class.last {
            run = self.builder.or(run, last);
        }
        let run = match self.has_marked_rows() {
            true => self.within_row(run),
            false => run,
        };
        let passed = self.builder.match_star(start, run);
        let between = self.builder.and_not(passed, structure.expected);
        let at = self.builder.or(between, markers);
        if !self.has_marked_rows() {
            return Markers { at, ..all };
        }
        let members = self.members(at, class);
        let ended = self.at_row_end(members);
        Markers { at, end: self.builder.or(all.end, ended), ..all }
    }

    // --- anything else

    fn repeat_any(
        &mut self,
        sub: &Hir,
        min: u32,
        max: Option<u32>,
        markers: Markers,
        follow: Follow,
    ) -> Result<Markers, CompileError> {
        let mut now = markers;
        // The required copies, each followed by the next one; the last one also by the part behind
        // the repetition, if no more copies are required.
        let again = self.first(sub, Follow::with(Side::Unknown)).side;
        for copy in 1..=min {
            let is_last = copy == min && max == Some(min);
            let inner = match (copy == min, is_last) {
                (_, true) => follow,
                (true, _) => Follow::with(again.or(follow.side)),
                _ => Follow::with(self.then_again(sub, follow)),
            };
            now = self.node(sub, now, inner)?;
        }
        // The optional copies: a star, or the union over each number of copies.
        let inner = Follow::with(self.then_again(sub, follow).or(follow.side));
        match max {
            None => match self.star_of_runs(sub, now) {
                Some(all) => Ok(all),
                None => self.star(sub, now, inner),
            },
            Some(max) => {
                let mut all = now;
                for _ in min..max {
                    now = self.node(sub, now, inner)?;
                    all = self.either(all, now);
                }
                Ok(all)
            }
        }
    }

    /// What is known about the character behind a copy that is followed by another copy.
    fn then_again(&self, sub: &Hir, follow: Follow) -> Side {
        let again = self.first(sub, Follow::with(Side::Unknown)).side;
        if sub.properties().minimum_len() > Some(0) {
            again
        } else {
            again.or(follow.side)
        }
    }

    /// `(c+d)*` for classes of bytes without a common member, such as `(\w+ )*`: one addition where
    /// the least fixed point takes a round for each copy in a block.
    ///
    /// Behind a first `c`, markers pass every `c`, and every `d` that follows a `c`. They have
    /// finished a copy behind each such `d`. Markers may not pass the ends of rows, so that rows
    /// take the fixed point.
    fn star_of_runs(&mut self, sub: &Hir, markers: Markers) -> Option<Markers> {
        if self.has_marked_rows() {
            return None;
        }
        let (run, end) = run_and_end(sub)?;
        let [run, end] = [run, end].map(|set| set.without(self.options.terminator));
        if !run.is_disjoint(end) {
            return None;
        }
        let (class, end) = (self.bytes(run), self.bytes(end));
        let started = self.step(markers.at, class, Side::Unknown).at;
        let behind = self.builder.advance(class, 1);
        let end = self.builder.and(end, behind);
        let passed = self.builder.or(class, end);
        let reached = self.builder.match_star(started, passed);
        let finished = self.step(reached, end, Side::Unknown).at;
        Some(Markers { at: self.builder.or(markers.at, finished), before: Side::Unknown, ..markers })
    }

    /// The least fixed point of one more copy. Alternatives that are single classes of bytes become
    /// one MatchStar inside it.
    fn star(&mut self, sub: &Hir, markers: Markers, inner: Follow) -> Result<Markers, CompileError> {
        let (class, others) = split_alternatives(sub);
        let class = if class.is_empty() { None } else { Some(self.bytes(class)) };
        let start = match class {
            Some(class) => self.star_of_bytes(class, markers),
            None => markers,
        };
        if others.is_empty() {
            return Ok(Markers { before: Side::Unknown, ..start });
        }
        let mut builder = std::mem::replace(&mut self.builder, crate::program::Builder::new(0));
        let at = builder.while_any(start.at, |builder, frontier| {
            std::mem::swap(builder, &mut self.builder);
            let result = self.star_step(&others, class, frontier, inner);
            std::mem::swap(builder, &mut self.builder);
            result
        });
        self.builder = builder;
        let none = self.builder.zero();
        let all = Markers { at: at?, end: none, before: Side::Unknown };
        if !self.has_marked_rows() {
            return Ok(all);
        }
        // Nothing goes on behind the last byte of a row: one more copy from everywhere ends there.
        let mut end = markers.end;
        for other in &others {
            let moved = self.node(other, all, inner)?;
            end = self.builder.or(end, moved.end);
        }
        if let Some(class) = class {
            let ended = self.star_of_bytes(class, all).end;
            end = self.builder.or(end, ended);
        }
        Ok(Markers { end, ..all })
    }

    fn star_step(
        &mut self,
        others: &[&Hir],
        class: Option<Value>,
        frontier: Value,
        inner: Follow,
    ) -> Result<Value, CompileError> {
        let mut union = self.builder.zero();
        for other in others {
            let none = self.builder.zero();
            let moved =
                self.node(other, Markers { at: frontier, end: none, before: Side::Unknown }, inner)?;
            union = self.builder.or(union, moved.at);
        }
        let none = self.builder.zero();
        Ok(match class {
            Some(class) => {
                self.star_of_bytes(class, Markers { at: union, end: none, before: Side::Unknown }).at
            }
            None => union,
        })
    }
}

/// What is known about the character before markers behind a repetition.
fn side_after(markers: Markers, side: Side, min: u32, max: Option<u32>) -> Side {
    match (min, max) {
        (_, Some(0)) => markers.before,
        (0, _) => markers.before.or(side),
        _ => side,
    }
}

/// The class of characters if the expression is a single class; captures are ignored.
fn single_class(hir: &Hir) -> Option<Ranges> {
    match hir.kind() {
        HirKind::Capture(capture) => single_class(&capture.sub),
        HirKind::Class(class) => Some(as_ranges(class)),
        _ => None,
    }
}

/// The alternatives that are single bytes, as one set, and the others. Captures are looked through.
fn split_alternatives(hir: &Hir) -> (ByteSet, Vec<&Hir>) {
    match hir.kind() {
        HirKind::Capture(capture) => split_alternatives(&capture.sub),
        HirKind::Alternation(parts) => {
            let (mut class, mut others) = (ByteSet::EMPTY, Vec::new());
            for part in parts {
                match single_bytes(part) {
                    Some(set) => class = class.or(set),
                    None => others.push(part),
                }
            }
            (class, others)
        }
        _ => match single_bytes(hir) {
            Some(set) => (set, Vec::new()),
            None => (ByteSet::EMPTY, vec![hir]),
        },
    }
}

/// The classes of `c+d`, captures looked through.
fn run_and_end(hir: &Hir) -> Option<(ByteSet, ByteSet)> {
    let parts = match hir.kind() {
        HirKind::Capture(capture) => return run_and_end(&capture.sub),
        HirKind::Concat(parts) => parts,
        _ => return None,
    };
    match &parts[..] {
        [run, end] => match run.kind() {
            HirKind::Repetition(Repetition { min: 1, max: None, sub, .. }) => {
                Some((single_bytes(sub)?, single_bytes(end)?))
            }
            _ => None,
        },
        _ => None,
    }
}

/// The bytes that an expression matches, if it always matches one byte.
fn single_bytes(hir: &Hir) -> Option<ByteSet> {
    match hir.kind() {
        HirKind::Literal(literal) if literal.0.len() == 1 => Some(ByteSet::single(literal.0[0])),
        HirKind::Capture(capture) => single_bytes(&capture.sub),
        HirKind::Class(class) => as_bytes(class),
        _ => None,
    }
}
