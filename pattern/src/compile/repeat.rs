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
        let passed = self.pass(class, min, markers.at);
        let at = match max {
            None => self.builder.match_star(passed, class),
            Some(max) => self.up_to(class, max.saturating_sub(min), passed),
        };
        let side = self.side_of_bytes(set);
        Markers { at, before: side_after(markers, side, min, max) }
    }

    /// Markers moved over exactly `count` members.
    fn pass(&mut self, class: Value, count: u32, markers: Value) -> Value {
        if count <= 1 {
            return if count == 0 { markers } else { self.step(markers, class) };
        }
        let run = self.run(class, count);
        let arrived = self.builder.advance(markers, count - 1);
        let arrived = if self.builder.ones() == markers { markers } else { arrived };
        self.note_run(run, class);
        self.step(arrived, run)
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
            let earlier = self.builder.advance(run, more);
            run = self.builder.and(run, earlier);
            done += more;
        }
        run
    }

    /// Markers moved over 0 to `count` members.
    fn up_to(&mut self, class: Value, count: u32, markers: Value) -> Value {
        if count >= FEWEST_SMEARED {
            let near = self.smear(markers, count);
            let reached = self.builder.match_star(markers, class);
            return self.builder.and(near, reached);
        }
        let mut reached = markers;
        let mut last = markers;
        for _ in 0..count {
            last = self.step(last, class);
            reached = self.builder.or(reached, last);
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
        let mut at = markers.at;
        for _ in 0..min {
            at = self.next(at, class);
            self.within_limit()?;
        }
        let mut all = at;
        match max {
            None => all = self.star_of_characters(class, at),
            Some(max) => {
                for _ in min..max {
                    at = self.next(at, class);
                    all = self.builder.or(all, at);
                    self.within_limit()?;
                }
            }
        }
        Ok(Markers { at: all, before: side_after(markers, side, min, max) })
    }

    /// Markers moved over any number of members: one addition through members' last bytes, leads
    /// and middles.
    fn star_of_characters(&mut self, class: &ClassStreams, markers: Value) -> Value {
        if self.is_everywhere(Markers { at: markers, before: Side::Unknown }) {
            return markers;
        }
        let structure = self.structure();
        // Where a sequence broke off, the byte here is not part of the run, but a marker may start
        // from it.
        let stranded = self.builder.and(markers, structure.expected);
        let stranded = self.builder.and(stranded, class.ascii);
        let stranded = self.builder.advance(stranded, 1);
        let mut start = self.builder.or(markers, stranded);
        for length in 0..3 {
            let member = self.long_member(markers, class, length);
            let passed = self.builder.advance(member, 1);
            start = self.builder.or(start, passed);
        }
        let lead = structure.any_lead(&mut self.builder);
        let opening = self.builder.or(class.ascii, lead);
        let mut run = self.builder.and_not(opening, structure.expected);
        run = self.builder.or(run, structure.middle);
        for last in class.last {
            run = self.builder.or(run, last);
        }
        let passed = self.builder.match_star(start, run);
        let between = self.builder.and_not(passed, structure.expected);
        self.builder.or(between, markers)
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
                    all = Markers { at: self.builder.or(all.at, now.at), before: all.before.or(now.before) };
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
    /// finished a copy behind each such `d`.
    fn star_of_runs(&mut self, sub: &Hir, markers: Markers) -> Option<Markers> {
        let (run, end) = run_and_end(sub)?;
        let [run, end] = [run, end].map(|set| set.without(self.options.terminator));
        if !run.is_disjoint(end) {
            return None;
        }
        let (class, end) = (self.bytes(run), self.bytes(end));
        let started = self.step(markers.at, class);
        let behind = self.builder.advance(class, 1);
        let end = self.builder.and(end, behind);
        let passed = self.builder.or(class, end);
        let reached = self.builder.match_star(started, passed);
        let finished = self.step(reached, end);
        Some(Markers { at: self.builder.or(markers.at, finished), before: Side::Unknown })
    }

    /// The least fixed point of one more copy. Alternatives that are single classes of bytes become
    /// one MatchStar inside it.
    fn star(&mut self, sub: &Hir, markers: Markers, inner: Follow) -> Result<Markers, CompileError> {
        let (class, others) = split_alternatives(sub);
        let class = if class.is_empty() { None } else { Some(self.bytes(class)) };
        let start = match class {
            Some(class) => self.builder.match_star(markers.at, class),
            None => markers.at,
        };
        if others.is_empty() {
            return Ok(Markers { at: start, before: Side::Unknown });
        }
        let mut builder = std::mem::replace(&mut self.builder, crate::program::Builder::new(0));
        let at = builder.while_any(start, |builder, frontier| {
            std::mem::swap(builder, &mut self.builder);
            let result = self.star_step(&others, class, frontier, inner);
            std::mem::swap(builder, &mut self.builder);
            result
        });
        self.builder = builder;
        Ok(Markers { at: at?, before: Side::Unknown })
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
            let moved = self.node(other, Markers { at: frontier, before: Side::Unknown }, inner)?;
            union = self.builder.or(union, moved.at);
        }
        Ok(match class {
            Some(class) => self.builder.match_star(union, class),
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
